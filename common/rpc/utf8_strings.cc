#include "common/rpc/utf8_strings.h"

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "common/base/utf8.h"

namespace medley::rpc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void EscapeString(Message& message, const Reflection& reflection, const FieldDescriptor& field) {
  std::string scratch;
  if (!field.is_repeated()) {
    const std::string& text = reflection.GetStringReference(message, &field, &scratch);
    if (!base::IsUtf8(text)) reflection.SetString(&message, &field, base::EscapeInvalidUtf8(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(message, &field, i, &scratch);
    if (!base::IsUtf8(text)) reflection.SetRepeatedString(&message, &field, i, base::EscapeInvalidUtf8(text));
  }
}

}  // namespace

void EscapeStrings(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) EscapeString(message, reflection, *field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      EscapeStrings(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      EscapeStrings(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

}  // namespace medley::rpc

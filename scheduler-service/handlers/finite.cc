#include "scheduler-service/handlers/finite.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

namespace medley::sched {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsReal(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE || field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
}

double RealAt(const Message& message, const Reflection& reflection, const FieldDescriptor& field, int index) {
  const bool wide = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
  if (!field.is_repeated()) {
    return wide ? reflection.GetDouble(message, &field) : static_cast<double>(reflection.GetFloat(message, &field));
  }
  return wide ? reflection.GetRepeatedDouble(message, &field, index)
              : static_cast<double>(reflection.GetRepeatedFloat(message, &field, index));
}

}  // namespace

std::string NotFinite(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!nested && !IsReal(*field)) continue;
    const int size = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      const std::string here = field->is_repeated() ? fmt::format("{}[{}]", field->json_name(), i) : field->json_name();
      if (!nested) {
        if (!std::isfinite(RealAt(message, reflection, *field, i))) return here;
        continue;
      }
      const std::string below = NotFinite(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                               : reflection.GetMessage(message, field));
      if (!below.empty()) return here + "." + below;
    }
  }
  return "";
}

}  // namespace medley::sched

#include "common/rpc/decode.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "common/base/status.h"

namespace medley::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kTextsOfAnObject = 4;

// Counts without creating anything. False when `left` is used up. Malformed bytes are left to the parser. Types of our
// contracts do not contain themselves, so the depth is bounded.
bool HasFewObjects(CodedInputStream& in, const Descriptor& type, int& left) {
  while (const uint32_t tag = in.ReadTag()) {
    const FieldDescriptor* const field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool delimited = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const bool object = delimited && field != nullptr && field->message_type() != nullptr;
    if (delimited) left -= object ? kTextsOfAnObject : 1;
    if (left < 0) return false;
    if (!object) {
      if (!WireFormatLite::SkipField(&in, tag)) return true;
      continue;
    }
    uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return true;
    const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(size));
    if (!HasFewObjects(in, *field->message_type(), left)) return false;
    in.PopLimit(limit);
  }
  return true;
}

}  // namespace

absl::Status Decode(std::string_view bytes, google::protobuf::Message& message, int max_objects) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  int left = max_objects * kTextsOfAnObject;
  if (!HasFewObjects(in, *message.GetDescriptor(), left)) {
    return base::InvalidArgument("the message has more than {} objects: split it, or leave out what is not used",
                                 max_objects);
  }
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return absl::OkStatus();
  return base::InvalidArgument("the bytes are not a message of type {}", message.GetDescriptor()->full_name());
}

}  // namespace medley::rpc

// Reads a message that another process has sent, within a bound of objects. Pure, thread-safe.
#pragma once

#include <absl/status/status.h>
#include <google/protobuf/message.h>

#include <string_view>

namespace medley::rpc {

// More than any request needs. It bounds the memory of a message by more than its bytes: an empty object has two bytes
// on the wire, and hundreds in memory.
inline constexpr int kMaxObjectsOfMessage = 32'768;

// Errors: InvalidArgument (malformed, or more objects; a text counts as a quarter of one).
absl::Status Decode(std::string_view bytes, google::protobuf::Message& message, int max_objects = kMaxObjectsOfMessage);

}  // namespace medley::rpc

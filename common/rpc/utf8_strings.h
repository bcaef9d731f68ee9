// Makes a message readable for its receiver, whatever bytes of users it holds.
#pragma once

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace medley::rpc {

// Applies base::EscapeInvalidUtf8 to every field of the type `string`, in keys and values of maps and in nested
// messages too; `bytes` stay as they are. A receiver cannot parse a message that has other strings: it breaks the
// stream, and a journal with them cannot be read. Call it before any message is written that quotes data, file names,
// errors of the system or of libraries. Thread-safe for different messages.
void EscapeStrings(google::protobuf::Message& message);

}  // namespace medley::rpc

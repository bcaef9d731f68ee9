// Protos as JSON and YAML. Pure and thread-safe.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>

#include "common/document/parse.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace medley::model {

// Reads JSON or YAML (common/document/parse.h, under its limits) into `message` in the proto3 JSON mapping (camelCase;
// the proto's own field names are accepted as well). Errors: InvalidArgument with the path for an unknown or duplicate
// field and for a value of the wrong type or out of range; with line and column for broken syntax.
// InvalidArgument also for more than 32,768 objects.
absl::Status ParseText(std::string_view text, google::protobuf::Message& message, const document::Limits& limits = {});

// The proto3 JSON of `message` with every scalar field, zeros included. `pretty` breaks it into lines.
std::string ToJson(const google::protobuf::Message& message, bool pretty = false);
// The same content as block YAML.
std::string ToYaml(const google::protobuf::Message& message);

}  // namespace medley::model

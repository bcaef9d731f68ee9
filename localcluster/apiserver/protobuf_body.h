// Converts bodies in Kubernetes' protobuf encoding, with which kubectl creates built-in kinds, to JSON. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "kube/schema/schema.h"

namespace medley::localcluster::apiserver {

// `definition`: the kind's name in Definitions. Field numbers come from schemas/builtin.json (x-proto).
// Errors: InvalidArgument if the body is not such a message.
absl::StatusOr<kube::Json> DecodeProtobuf(std::string_view body, const kube::Definitions& definitions,
                                          std::string_view definition);

}  // namespace medley::localcluster::apiserver

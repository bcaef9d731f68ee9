// The media types of request bodies, as kube-apiserver tells them. Pure.
//
// A body of any other type is refused: browsers send forms and text/plain to every address without asking it first.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

namespace medley::localcluster::apiserver {

enum class BodyType { kJson, kYaml, kProtobuf };

// For a body that is an object. Without a Content-Type it is JSON; parameters such as charset are ignored. `builtin`:
// whether the kind is Kubernetes' own, which may be protobuf. Errors: 415, which lists the types.
absl::StatusOr<BodyType> ObjectBodyType(std::string_view content_type, bool builtin);

enum class PatchBody { kJsonPatch, kMerge, kStrategic, kApply };

// For the body of a PATCH, which has no default. `builtin`: only those kinds have strategic merge patches. Errors: 415.
absl::StatusOr<PatchBody> PatchBodyType(std::string_view content_type, bool builtin);

}  // namespace medley::localcluster::apiserver

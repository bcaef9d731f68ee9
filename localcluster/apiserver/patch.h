// The patch types of the API: JSON merge patch, JSON patch, strategic merge patch. Pure.
#pragma once

#include <absl/status/statusor.h>

#include "kube/schema/schema.h"

namespace medley::kube::apiserver {

// RFC 6902, including "test". Errors: 422 for an operation that fails, 400 for a malformed one.
absl::StatusOr<Json> JsonPatch(const Json& document, const Json& patch);

// Merges maps. Lists are merged by the schema's patchMergeKey, or as sets of scalars if the strategy is merge, and
// replaced otherwise. Directives: $patch (delete, replace, merge), $deleteFromPrimitiveList/x, $setElementOrder/x,
// $retainKeys. Errors: 400 for a malformed directive.
absl::StatusOr<Json> StrategicMergePatch(const Json& document, const Json& patch, const Schema& schema);

}  // namespace medley::kube::apiserver

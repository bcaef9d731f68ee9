// The patch types of the API: JSON merge patch, JSON patch, strategic merge patch. Pure.
#pragma once

#include <absl/status/statusor.h>

#include "kube/schema/schema.h"

namespace medley::localcluster::apiserver {

// RFC 6902, including "test". Errors: 422 for an operation that fails, 400 for a malformed one.
absl::StatusOr<kube::Json> JsonPatch(const kube::Json& document, const kube::Json& patch);

// Merges maps. Lists are merged by the schema's patchMergeKey, or as sets of scalars if the strategy is merge, and
// replaced otherwise. Directives: $patch (delete, replace, merge), $deleteFromPrimitiveList/x, $setElementOrder/x,
// $retainKeys. Errors: 400 for a malformed directive.
absl::StatusOr<kube::Json> StrategicMergePatch(const kube::Json& document, const kube::Json& patch,
                                               const kube::Schema& schema);

}  // namespace medley::localcluster::apiserver

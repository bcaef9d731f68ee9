// The patch types of the API: JSON merge patch, JSON patch, strategic merge patch. Pure.
#pragma once

#include <absl/status/statusor.h>

#include "localcluster/apiserver/schema.h"

namespace medley::kube::apiserver {

// RFC 6902, with "test". Errors: 422 for an operation that cannot be done, 400 for a malformed one.
absl::StatusOr<Json> JsonPatch(const Json& document, const Json& patch);

// Maps merge; lists merge by the schema's patchMergeKey, or as sets of scalars where the strategy says
// so, else are replaced. Directives: $patch (delete, replace, merge), $deleteFromPrimitiveList/x,
// $setElementOrder/x, $retainKeys. Errors: 400 for a malformed directive.
absl::StatusOr<Json> StrategicMergePatch(const Json& document, const Json& patch, const Schema& schema);

}  // namespace medley::kube::apiserver

// Field ownership: managedFields of every write, and server-side apply. Pure.
//
// The algorithm is structured-merge-diff's: an applier owns what it last applied; fields that it stops
// applying go unless somebody else owns them too; changing a field that another manager owns is a
// conflict unless forced; other writers own what they changed and take it from everybody.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "localcluster/apiserver/registry.h"
#include "localcluster/apiserver/rest.h"

namespace medley::kube::apiserver {

// Notes in next.metadata.managedFields what `manager` changed between `old` (null: created) and `next`.
void TrackUpdate(const ResourceInfo& info, const Json* old, Json* next, const std::string& manager,
                 const std::string& subresource, const std::string& now);

// The object that applying `config` to `live` gives, managedFields included.
// Errors: 409 with one FieldManagerConflict for each field; 400 when config has managedFields.
absl::StatusOr<Json> MergeApply(const ResourceInfo& info, const Json& live, const Json& config,
                                const WriteOptions& options, const std::string& now);

// Equal but for the times in managedFields: a write of nothing.
bool SameButTimes(const Json& a, const Json& b);

}  // namespace medley::kube::apiserver

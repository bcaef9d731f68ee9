// Field ownership: the managedFields of every write, and server-side apply. Pure.
//
// The algorithm is that of structured-merge-diff. An applier owns the fields that it last applied. A field that it
// stops applying is removed unless another manager also owns it. Changing a field that another manager owns is a
// conflict, unless forced. Other writers own the fields that they changed and take them from all other managers.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "localcluster/apiserver/registry.h"
#include "localcluster/apiserver/rest.h"

namespace medley::localcluster::apiserver {

// Records in next.metadata.managedFields what `manager` changed between `old` (null: created) and `next`.
void TrackUpdate(const ResourceInfo& info, const kube::Json* old, kube::Json* next, const std::string& manager,
                 const std::string& subresource, const std::string& now);

// Applies `config` to `live` and returns the result with its managedFields.
// Errors: 409 with one FieldManagerConflict for each field; 400 when config has managedFields.
absl::StatusOr<kube::Json> MergeApply(const ResourceInfo& info, const kube::Json& live, const kube::Json& config,
                                      const WriteOptions& options, const std::string& now);

// True if the objects are equal except for the times in managedFields: such a write changes nothing.
bool SameButTimes(const kube::Json& a, const kube::Json& b);

}  // namespace medley::localcluster::apiserver

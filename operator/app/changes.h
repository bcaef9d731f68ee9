// Which changes of objects a controller of the operator looks at. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

// The UID of the object's controller, for an index; empty: it has none.
std::vector<std::string> OwnerUid(const kube::Object& object);

// True for changes of the spec or the finalizers; false for the status, which the operator itself writes.
bool JobChanged(const kube::Object& before, const kube::Object& now);

// What a job's view of a pool depends on.
bool PoolChanged(const kube::Object& before, const kube::Object& now);

// What decides which profiles a job wants.
bool ProfilesChanged(const kube::Object& before, const kube::Object& now);

// True for changes of what the operator writes; false for the status, as of a PodDisruptionBudget.
bool OwnObjectChanged(const kube::Object& before, const kube::Object& now);

bool ReplansOnPriceChange(const kube::Object& job);

}  // namespace medley::ops

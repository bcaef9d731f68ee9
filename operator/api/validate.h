// Repeats every CEL rule of deploy/crds with the same message, so that the operator reports the same errors in a
// condition when the API server does not evaluate CEL. tests/unit/operator/api checks that no message of a CRD is
// missing here. Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

// Returns the messages of the rules that the object breaks, in the order of the fields; empty: the object is valid.
// Values of a wrong type or outside of their bounds break no rule here, because TrainingJob::FromObject and
// ResourcePool::FromObject refuse them.
std::vector<std::string> ValidateTrainingJob(const kube::Object& job);
std::vector<std::string> ValidateResourcePool(const kube::Object& pool);

// The same for an update: which fields must not change. `before` and `after` are specs, with or without defaults.
std::vector<std::string> ValidateTrainingJobUpdate(const kube::Json& before, const kube::Json& after);

}  // namespace medley::ops

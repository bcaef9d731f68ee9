// Evaluates the rules of deploy/crds (x-kubernetes-validations), which are compiled in: an object may have been stored
// under older definitions, or by a server that does not evaluate rules. The sentences are those of the API server. Pure
// and thread-safe; the rules are compiled once, at the first call.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

// Returns the messages of the rules that the object breaks, in the order of the fields; empty: the object is valid.
// Values outside of their bounds break no rule here, because TrainingJob::FromObject and ResourcePool::FromObject
// refuse them. Where a rule has no value because a field is missing or of a wrong type, the messages say that.
std::vector<std::string> ValidateTrainingJob(const kube::Object& job);
std::vector<std::string> ValidateResourcePool(const kube::Object& pool);

// The same for an update: which fields must not change. `before` and `after` are specs, with or without defaults.
std::vector<std::string> ValidateTrainingJobUpdate(const kube::Json& before, const kube::Json& after);

}  // namespace medley::ops

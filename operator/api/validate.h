// Every CEL rule of deploy/crds again, with the same sentence, so that an API server without CEL
// refuses the same manifests through a condition. tests/unit/operator/api checks that no sentence
// of a CRD is missing here. Pure.
#pragma once

#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

// The sentences of the rules that the object breaks, in the order of the fields; empty: it is fine.
// The JSON need not have been checked against the schema: values of a wrong type break no rule here
// (the typed readers refuse them).
std::vector<std::string> ValidateTrainingJob(const kube::Object& job);
std::vector<std::string> ValidateResourcePool(const kube::Object& pool);

// What may not change: `before` and `after` are specs (with or without defaults).
std::vector<std::string> ValidateTrainingJobUpdate(const kube::Json& before, const kube::Json& after);

}  // namespace medley::ops

// The schema of a TrainingJob's spec, as data: types, bounds and defaults of deploy/crds/trainingjobs.yaml, without its
// texts and rules. Thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

namespace medley::model {

// In OpenAPI's form, of `spec`. `x-absent` of a field is what its absence means where it cannot have a default.
// `x-path` is true for files and folders that pods open (cmake/job_fields.py).
const nlohmann::json& JobSchema();

// Calls `change` with every text of `spec` that is such a path, or a URI of one, in the order of the fields' names.
// What is not as the schema says is left as it is.
void ForEachPath(nlohmann::json& spec, const std::function<void(std::string&)>& change);

}  // namespace medley::model

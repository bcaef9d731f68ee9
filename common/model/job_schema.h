// The schema of a TrainingJob's spec, as data: types, bounds and defaults of deploy/crds/trainingjobs.yaml, without its
// texts and rules. Thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace medley::model {

// In OpenAPI's form, of `spec`. `x-absent` of a field is what its absence means where it cannot have a default
// (cmake/job_fields.py).
const nlohmann::json& JobSchema();

}  // namespace medley::model

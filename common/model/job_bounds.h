// The bounds of a TrainingJob's fields, which are those of the CRD's schema (job_schema.h). Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medley::model {

// Checks all that the schema says of the fields that a JobSpec has, but volumes: schema_bounds.h. Errors:
// InvalidArgument that names the first field whose value is not allowed, from "spec.".
absl::Status CheckJobFields(const nlohmann::json& spec);
// The same for every field of the spec that is present, but its enumerations, which readers refuse or default.
absl::Status CheckPresentJobFields(const nlohmann::json& spec);

// Whether a column may have this number: that of a range, which stands in no field.
absl::Status CheckColumn(const std::string& path, int column);

// The most numbers of one sample of an input, on each axis and on all together.
int64_t MostNumbersOfInput();

}  // namespace medley::model

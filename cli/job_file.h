// The planning request of a job file: ResourcePools and one TrainingJob, as for `medley run`.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/model/forward.h"

namespace medley::cli {

// True for a YAML stream with a TrainingJob.
bool IsJobFile(const std::string& text);

// Builds the request with the operator's own code. Every pool counts with its limit, as if nobody used it. Pools that
// are priced by an offering stay without a price. `profile` has the layers of the job on these pools. Errors: those of
// LoadManifests; InvalidArgument (the job or a pool is not valid, a pool that the job names is not in the file).
absl::StatusOr<model::PlanRequest> ReadJobFile(const std::string& file, const model::Profile& profile);

}  // namespace medley::cli

// The optimizer of a job's spec. Pure.
#pragma once

#include <absl/status/statusor.h>

#include "common/model/job_spec.h"
#include "worker/params/optimizer.h"

namespace medley::worker {

// Errors: those of MakeOptimizer.
absl::StatusOr<Optimizer> OptimizerOf(const model::TrainingSpec& training);

}  // namespace medley::worker

// The rules of spec.training.optimizer. Part of the validation of job_spec.h. Pure.
#pragma once

#include <absl/status/status.h>

namespace medley::model {

struct TrainingSpec;

// InvalidArgument, which names the field.
absl::Status ValidateOptimizer(const TrainingSpec& training);

}  // namespace medley::model

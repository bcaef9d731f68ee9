// The rules of job_spec.h about inputs of samples. Used by job_spec_validate.cc.
#pragma once

#include <absl/status/status.h>

#include "common/model/job_spec.h"

namespace medley::model {

// The arrays of inputs have a bounded number of numbers.
absl::Status ValidateInputs(const JobSpec& spec);

}  // namespace medley::model

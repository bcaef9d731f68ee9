// The rules of job_spec.h about sources and inputs of samples. Used by job_spec_validate.cc.
#pragma once

#include <absl/status/status.h>

#include "common/model/job_spec.h"

namespace medley::model {

// Sources and inputs are complete and fit each other and the model.
absl::Status ValidateInputs(const JobSpec& spec);

}  // namespace medley::model

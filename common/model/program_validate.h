// The part of Validate(JobSpec) that is about spec.program. Thread-safe.
#pragma once

#include <absl/status/status.h>

#include "common/model/job_fields.h"

namespace medley::model {

// InvalidArgument that names the first field that is wrong.
absl::Status ValidateProgram(const ProgramSpec& program);

}  // namespace medley::model

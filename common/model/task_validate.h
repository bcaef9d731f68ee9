// The rules of job_spec.h about the task: classes, their weights, outputs. Used by job_spec_validate.cc.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "common/model/job_spec.h"

namespace medley::model {

// Names of classes, and weights of them, fit the task.
absl::Status ValidateTask(const JobSpec& spec);
// The layer that the Loss takes has the outputs that the task needs, and one more for each of `negatives`; `path` is
// that of the Loss. Null: no layer is before it. `width`: its floats per sample.
absl::Status ValidateOutputs(const std::string& path, const LayerSpec* before, int64_t width, int negatives,
                             const SchemaSpec& schema);

}  // namespace medley::model

// The rules of job_spec.h about the task: labels, outputs, losses, weights of classes. Used by job_spec_validate.cc.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "common/model/job_spec.h"

namespace medley::model {

// Labels, loss and class weights fit the task.
absl::Status ValidateTask(const JobSpec& spec);
// The layer that the Loss takes has the outputs that the task needs, and one more for each of `negatives`; `path` is
// that of the Loss. Null: no layer is before it. `width`: its floats per sample.
absl::Status ValidateOutputs(const std::string& path, const LayerSpec* before, int64_t width, int negatives,
                             const SchemaSpec& schema);
// The metric is one that the task has.
absl::Status ValidateMetric(const std::string& path, const std::string& metric, Task task);

}  // namespace medley::model

// The parts of a TrainingJob's spec that the operator checks and the worker runs. Those that are as the CRD's schema
// says are made from it (job_fields.h); the data are what the schema's lists and ranges mean (data_spec.h).
//
// Parsed from the JSON of `spec` (docs/use/api.md). Every error names the field's path ("spec.training.epochs: ...").
// Immutable values.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/model/data_spec.h"
#include "common/model/job_fields.h"
#include "common/model/task.h"

namespace medley::model {

struct JobSpec {
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  CheckpointSpec checkpoint;
  bool export_best = true;  // export: Best; false: Last
};

// `json` is the `spec` object. Unknown fields are ignored here; the API server refuses them.
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// Checks that the values are in range and fit together. Returns the first error, with the field's path.
absl::Status Validate(const JobSpec& spec);

// The most classes of kMultiClass, named or found in the data: as many as spec.data.schema.label.classes may have.
inline constexpr size_t kMostClasses = 1000;

// The metric by which the best model is chosen: that of spec.training.evaluation, of earlyStopping, or of the task.
// As in manifests.
std::string SelectionMetric(const JobSpec& spec);

// The number of the model's outputs; 0 when only the training data tell how many classes there are.
int OutputsOf(const SchemaSpec& schema);

}  // namespace medley::model

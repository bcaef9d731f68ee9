// The parts of a TrainingJob's spec that the operator checks and the worker runs. They are made from the CRD's schema
// (job_fields.h, data_fields.h); of the data, lists of columns are what their ranges and dates mean (data_spec.h).
//
// Parsed from the JSON of `spec` (docs/use/api.md). Every error names the field's path ("spec.training.epochs: ...").
// Immutable values.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/model/data_spec.h"
#include "common/model/job_fields.h"
#include "common/model/task.h"

namespace medley::model {

struct JobSpec {
  // Instead of model and data, which are then as in an empty spec; training.batch_size is the program's samples a step.
  std::optional<ProgramSpec> program;
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  CheckpointSpec checkpoint;
  bool export_best = true;  // export: Best; false: Last
};

// `json` is the `spec` object. Each known field is as the schema says (schema_bounds.h): of its type, within its
// bounds, one of its values. Errors: InvalidArgument with the field's path. Unknown fields are ignored here; the API
// server refuses them.
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// Checks what no rule of the CRD can say of a spec that ParseJobSpec returned, or of the like: that layers, columns,
// files and classes fit together (docs/adr/0104). Returns the first error, with the field's path.
absl::Status Validate(const JobSpec& spec);

// The metric by which the best model is chosen: that of spec.training.evaluation, of earlyStopping, or of the task.
// As in manifests.
std::string SelectionMetric(const JobSpec& spec);

// The number of the model's outputs; 0 when only the training data tell how many classes there are.
int OutputsOf(const SchemaSpec& schema);

}  // namespace medley::model

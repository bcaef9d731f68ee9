// The parts of a TrainingJob's spec that the operator checks and the worker runs.
//
// Parsed from the JSON of `spec` (docs/use/api.md). Every error names the field's path ("spec.training.epochs: ...").
// Immutable values.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::model {

// One layer of spec.model.layers.
struct LayerSpec {
  std::string name;
  std::string kind;        // Embedding, FullyConnected, Loss
  int out = 0;             // FullyConnected: units; Embedding: dimension
  std::string activation;  // relu, sigmoid, tanh or empty
};

struct ModelSpec {
  std::string name;                           // ctrdnn, mlp, logistic; empty when `layers` are given
  int embedding_dim = 16;                     // parameters.embeddingDim
  int64_t embedding_rows = 65536;             // parameters.embeddingRows: hash buckets of the shared table
  std::vector<int> hidden = {400, 400, 400};  // parameters.hidden
  std::vector<LayerSpec> layers;
};

struct SourceSpec {
  std::string uri;     // file:///data/x.csv
  std::string format;  // csv, tsv
};

// Columns that a manifest names as the file's header does. Lists are empty, or have an entry for each column of the
// schema's list: "" for one that is given by its number.
struct ColumnNames {
  std::string label;
  std::vector<std::string> categorical;
  std::vector<std::string> numeric;

  bool empty() const { return label.empty() && categorical.empty() && numeric.empty(); }
};

// The columns of the data. Column indices count from 0; that of a named column is -1 until a header is read
// (worker/data/columns.h).
struct SchemaSpec {
  int label_column = -1;
  std::string label_positive;  // the text that means label 1 (trailing "." ignored); empty: the column is 0/1
  std::vector<int> categorical;
  std::vector<int> numeric;
  // Numeric columns are also put into this many quantile buckets of the training data and embedded; 0: not embedded.
  int numeric_buckets = 0;
  bool header = false;
  ColumnNames names;
};

struct DataSpec {
  SourceSpec train;
  std::optional<SourceSpec> test;
  SchemaSpec schema;
  int64_t max_bad_rows = 0;
};

// When the test data are evaluated before the end of the training: exactly one number is above 0.
struct EvaluationSpec {
  int every_epochs = 0;
  int64_t every_steps = 0;
};

// Training stops when the metric has not improved by more than min_delta in `patience` evaluations in a row.
struct EarlyStoppingSpec {
  std::string metric;  // auc, logLoss, accuracy
  int patience = 0;
  double min_delta = 0;
};

// How the learning rate changes with the number of the step (worker/params/rate_schedule.h).
struct ScheduleSpec {
  std::string kind;  // constant, step, cosine
  int64_t warmup_steps = 0;
  int64_t every_steps = 0;  // step
  double factor = 0.1;      // step
  int64_t steps = 0;        // cosine
  double final_factor = 0;  // cosine
};

struct TrainingSpec {
  int epochs = 1;
  int batch_size = 512;  // global batch, samples per step
  int micro_batches = 4;
  std::string optimizer = "adagrad";  // adagrad, sgd
  double learning_rate = 0.05;
  std::optional<ScheduleSpec> schedule;  // absent: the learning rate is constant
  std::string precision = "float32";
  uint64_t seed = 1;
  std::optional<EvaluationSpec> evaluation;  // absent: only at the end
  std::optional<EarlyStoppingSpec> early_stopping;
};

struct CheckpointSpec {
  double interval_seconds = 60;
  int keep = 3;
  std::string path;  // mountPath of the volume; empty: no checkpoints on a volume
  // Folder of another job, or of one of its checkpoints, that the job continues from when it has no checkpoint of its
  // own: an absolute path in the pods or the same as file:///. Empty: it starts from the seed.
  std::string from;
};

struct JobSpec {
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  CheckpointSpec checkpoint;
};

// `json` is the `spec` object. Unknown fields are ignored here; the API server refuses them.
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// Checks that the values are in range and fit together. Returns the first error, with the field's path.
absl::Status Validate(const JobSpec& spec);

// A hash (16 hexadecimal digits) of all that determines a profile: model, training data, schema and batch.
std::string ProfileHash(const JobSpec& spec);

}  // namespace medley::model

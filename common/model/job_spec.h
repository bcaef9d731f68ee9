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

#include "common/model/task.h"

namespace medley::model {

// One layer of spec.model.layers.
struct LayerSpec {
  std::string name;
  std::string kind;        // Embedding, FullyConnected, Loss
  int out = 0;             // FullyConnected: units; Embedding: dimension
  std::string activation;  // relu, sigmoid, tanh or empty
};

// How an exported model is divided into operations: worker/cut/cut.h.
struct CutSpec {
  int depth = 1;                     // components of the module path
  std::vector<std::string> modules;  // paths; instead of depth
  bool finest = false;               // every call is an operation; instead of depth
};

struct ModelSpec {
  std::string name;                           // ctrdnn, mlp, logistic, residual, two-tower; empty with `layers`
  int embedding_dim = 16;                     // parameters.embeddingDim
  int64_t embedding_rows = 65536;             // parameters.embeddingRows: hash buckets of the shared table
  std::vector<int> hidden = {400, 400, 400};  // parameters.hidden
  std::vector<LayerSpec> layers;
  std::string loss;          // regression: mse, mae; empty: mse
  std::string exported_uri;  // exported.uri: file:///models/model.pt2, instead of name and layers
  CutSpec cut;               // of an exported model
  std::string output;        // of an exported model with several: which one the loss takes, by name or number
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
  Task task = Task::kBinary;       // spec.model.task: how labels are read
  int label_column = -1;           // -1: no column; the labels of kMultiLabel are in label_columns
  std::vector<int> label_columns;  // kMultiLabel: columns of 0 and 1
  // kBinary: the text that means label 1 (trailing "." ignored); empty: the column is 0/1.
  std::string label_positive;
  // kMultiClass: the names of the classes, in the order of their numbers; empty: those of the training data, sorted.
  std::vector<std::string> label_classes;
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
  std::string metric;  // one of TaskMetrics
  int patience = 0;
  double min_delta = 0;
};

// Factors of the losses of samples by their class. Evaluations count every sample once.
struct ClassWeightsSpec {
  bool balanced = false;                  // rows / (classes x rows of the class), of the training data
  std::map<std::string, double> weights;  // by class, for kBinary 0 and 1; other classes have 1
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
  std::string optimizer = "adagrad";  // adagrad, adam, adamw, sgd
  double learning_rate = 0.05;
  std::optional<double> beta1;           // adam, adamw; absent: 0.9
  std::optional<double> beta2;           // adam, adamw; absent: 0.999
  std::optional<double> epsilon;         // adam, adamw and adagrad; absent: 1e-8, 1e-8 and 1e-10
  std::optional<double> momentum;        // sgd; absent: 0
  bool nesterov = false;                 // sgd with momentum
  std::optional<double> weight_decay;    // absent: 0.01 for adamw, else 0
  std::optional<ScheduleSpec> schedule;  // absent: the learning rate is constant
  std::string precision = "float32";
  uint64_t seed = 1;
  std::optional<EvaluationSpec> evaluation;  // absent: only at the end
  std::optional<EarlyStoppingSpec> early_stopping;
  std::optional<ClassWeightsSpec> class_weights;
  bool tensor_board = false;  // write TensorBoard event files into the job's folder
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

// The most classes of kMultiClass, and the most labels of kMultiLabel.
inline constexpr size_t kMostClasses = 1000;
inline constexpr size_t kMostLabels = 128;

// The number of the model's outputs; 0 when only the training data tell how many classes there are.
int OutputsOf(const SchemaSpec& schema);

// Text for hashes: what distinguishes a task from binary classification, and samples from unweighted ones. Empty for
// these two.
std::string TaskText(const JobSpec& spec);
std::string ClassWeightsText(const TrainingSpec& training);

// A hash (16 hexadecimal digits) of all that determines a profile: model, training data, schema and batch.
std::string ProfileHash(const JobSpec& spec);

}  // namespace medley::model

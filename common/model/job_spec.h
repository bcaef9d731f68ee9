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

#include "common/model/data_spec.h"
#include "common/model/task.h"

namespace medley::model {

// One layer of spec.model.layers.
struct LayerSpec {
  std::string name;
  std::string kind;        // Embedding, FullyConnected, Dropout, Loss
  int out = 0;             // FullyConnected: units; Embedding: dimension
  std::string activation;  // relu, sigmoid, tanh or empty
  double fraction = 0;     // Dropout: of the outputs of the layer before, which training sets to 0
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
  double dropout = 0;                         // parameters.dropout: of the outputs of each hidden layer, in [0, 1)
  std::vector<LayerSpec> layers;
  std::string loss;             // regression: mse, mae; empty: mse
  std::string exported_uri;     // exported.uri: file:///models/model.pt2, instead of name and layers
  std::string torchscript_uri;  // torchScript.uri: file:///models/model.pt, instead of name and layers
  std::string initial_from;     // initialFrom: folder of an exported model with whose weights training begins
  CutSpec cut;                  // of a model from PyTorch
  std::string output;           // of a model from PyTorch with several: which one the loss takes, by name or number

  // Whether it comes from a file of PyTorch.
  bool imported() const { return !exported_uri.empty() || !torchscript_uri.empty(); }
};

// When models are evaluated before the end of the training: exactly one number is above 0.
struct EvaluationSpec {
  int every_epochs = 0;
  int64_t every_steps = 0;
  std::string metric;  // by which the best model is chosen; empty: SelectionMetric
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
  std::string optimizer = "adagrad";  // adagrad, adam, adamw, rmsprop, sgd
  double learning_rate = 0.05;
  std::optional<double> beta1;         // adam, adamw; absent: 0.9
  std::optional<double> beta2;         // adam, adamw; absent: 0.999
  std::optional<double> alpha;         // rmsprop; absent: 0.99
  std::optional<double> epsilon;       // all but sgd; absent: 1e-8, adagrad 1e-10
  std::optional<double> momentum;      // sgd and rmsprop; absent: 0
  bool nesterov = false;               // sgd with momentum
  std::optional<double> weight_decay;  // absent: 0.01 for adamw, else 0
  std::optional<double> row_decay;     // of rows of embedding tables, in the steps that use them; absent: weight_decay
  std::optional<double> clip_norm;     // largest norm of the gradient of all parameters; absent: none
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
  bool export_best = true;  // export: Best; false: Last
};

// `json` is the `spec` object. Unknown fields are ignored here; the API server refuses them.
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// Checks that the values are in range and fit together. Returns the first error, with the field's path.
absl::Status Validate(const JobSpec& spec);

// The most classes of kMultiClass, and the most labels of kMultiLabel.
inline constexpr size_t kMostClasses = 1000;
inline constexpr size_t kMostLabels = 128;

// The metric by which the best model is chosen: that of spec.training.evaluation, of earlyStopping, or of the task.
// As in manifests.
std::string SelectionMetric(const JobSpec& spec);

// The number of the model's outputs; 0 when only the training data tell how many classes there are.
int OutputsOf(const SchemaSpec& schema);

// Text for hashes: what distinguishes a task from binary classification, samples from unweighted ones, and inputs from
// those that the lists of columns are. Empty for these.
std::string TaskText(const JobSpec& spec);
std::string ClassWeightsText(const TrainingSpec& training);
std::string InputsText(const DataSpec& data);

// A hash (16 hexadecimal digits) of all that determines a profile: model, training data, schema and batch.
std::string ProfileHash(const JobSpec& spec);

}  // namespace medley::model

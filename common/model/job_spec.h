// What a TrainingJob asks to be trained: the parts of its spec that the operator checks and the worker runs.
//
// Parsed from the JSON of `spec` (api.md); every error names the field's path ("spec.training.epochs: ...").
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

// Where the columns are. A column index counts from 0.
struct SchemaSpec {
  int label_column = -1;
  std::string label_positive;  // the text that means 1 (trailing "." ignored); empty: the column is 0/1
  std::vector<int> categorical;
  std::vector<int> numeric;
  // Numeric columns that are also bucketed (quantiles of the training data) and embedded; 0 buckets: none.
  int numeric_buckets = 0;
  bool header = false;
};

struct DataSpec {
  SourceSpec train;
  std::optional<SourceSpec> test;
  SchemaSpec schema;
  int64_t max_bad_rows = 0;
};

struct TrainingSpec {
  int epochs = 1;
  int batch_size = 512;  // global batch, samples a step
  int micro_batches = 4;
  std::string optimizer = "adagrad";  // adagrad, sgd
  double learning_rate = 0.05;
  std::string precision = "float32";
  uint64_t seed = 1;
};

struct CheckpointSpec {
  double interval_seconds = 60;
  int keep = 3;
  std::string path;  // mountPath of the volume; empty: no checkpoints on a volume
};

struct JobSpec {
  ModelSpec model;
  DataSpec data;
  TrainingSpec training;
  CheckpointSpec checkpoint;
};

// `json` is the object of `spec`. Unknown fields are ignored (the API server refuses them).
absl::StatusOr<JobSpec> ParseJobSpec(std::string_view json);

// Everything ParseJobSpec accepts must also make sense together; the first error, with its path.
absl::Status Validate(const JobSpec& spec);

// The hash of what determines a profile: model, schema and batch (16 hex digits).
std::string ProfileHash(const JobSpec& spec);

}  // namespace medley::model

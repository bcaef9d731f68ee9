// What an export says about a model, without its weights: the layers, the schema and the fitted transform.
//
// The files are model.json and schema.json; docs/use/model.md describes them. Immutable values and pure functions,
// thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/transform.h"
#include "worker/model/graph.h"

namespace medley::worker {

inline constexpr int kExportVersion = 1;
// The version of model.json where a FullyConnected or the Loss takes another output than that of the layer before it.
inline constexpr int kNamedInputsVersion = 2;
// Bounds of the JSON in an export: more is refused before it is read.
inline constexpr int64_t kMostJsonBytes = int64_t{1} << 26;
inline constexpr size_t kMostJsonValues = 4'000'000;
inline constexpr std::string_view kModelFile = "model.json";
inline constexpr std::string_view kSchemaFile = "schema.json";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kProgramFile = "program.pt2";  // of a model from PyTorch: what it computes
inline constexpr std::string_view kNumpyFolder = "numpy";
inline constexpr std::string_view kCardFile = "README.md";
inline constexpr std::string_view kLogFile = "training.log";

struct ExportedModel {
  Graph graph;
  model::SchemaSpec schema;
  char delimiter = ',';
  int64_t embedding_rows = 1;  // categorical values are hashed into [0, embedding_rows)
  int64_t max_bad_rows = 0;    // rows that the job left out when it could not read them, at most
  Transform transform;       // one column for each of schema.numeric; its label, and the graph's outputs, fit the task
  std::string output;        // of a model from PyTorch with several: the one that is predicted, as spec.model.output
  std::string array_format;  // of the data: idx, npy, raw; empty: a table

  // Its program is in kProgramFile. The operations that are read back have no parameters: read_program.h has them.
  bool FromPyTorch() const {
    return !graph.operations.empty() && graph.operations.front().kind == OperationKind::kImported;
  }
};

// Where the weights come from.
struct ExportOrigin {
  std::string job;
  std::string job_uid;
  int64_t step = 0;
  std::string medley_version;
};

// A parameter of the model as a tensor of the export, for example "fc1.weight". Those of a model that was exported from
// PyTorch have the names and shapes of its state_dict.
struct ExportedTensor {
  std::string name;
  ParameterSpec spec;
  std::vector<int64_t> shape;  // a bias has one dimension, the others rows and columns

  int64_t bytes() const { return spec.Size() * static_cast<int64_t>(sizeof(float)); }
};

const char* ActivationName(Activation activation);  // "relu", "none"

// All parameters, in the order of the operations; one that several operations have once.
std::vector<ExportedTensor> TensorsOf(const Graph& graph);

std::string ModelJson(const ExportedModel& model, const ExportOrigin& origin);
std::string SchemaJson(const ExportedModel& model);
// The inverse of both. Errors: InvalidArgument naming the field, also when layers do not fit together.
absl::StatusOr<ExportedModel> ParseExportedModel(std::string_view model_json, std::string_view schema_json);

}  // namespace medley::worker

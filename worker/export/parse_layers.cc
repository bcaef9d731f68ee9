#include "worker/export/parse_layers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/layer_kinds.h"
#include "worker/model/layer_table.h"

namespace medley::worker {
namespace {

using document::Reader;

constexpr int64_t kMaxWidth = int64_t{1} << 24;  // of a layer

absl::Status ReadParameter(const Reader& layer, const std::string& name, int operation, bool sparse, Operation& to) {
  const Reader parameter = layer.Child("parameters").Child(name);
  std::vector<int64_t> shape;
  parameter.Read("shape", shape);
  const size_t dimensions = name == "bias" ? 1 : 2;
  const std::string expected = to.name + "." + name;
  if (parameter.String("tensor") != expected) {
    return base::InvalidArgument("{}.tensor: must be '{}'", parameter.path(), expected);
  }
  if (shape.size() != dimensions) {
    return base::InvalidArgument("{}.shape: must have {} dimensions", parameter.path(), dimensions);
  }
  for (const int64_t size : shape) {
    if (size < 1 || size > kMostExportedFloats)
      return base::InvalidArgument("{}.shape: {} is out of range", parameter.path(), size);
  }
  if (dimensions == 2 && shape[0] > kMostExportedFloats / shape[1]) {
    return base::InvalidArgument("{}.shape: the tensor is too large", parameter.path());
  }
  to.parameters.push_back({.operation = operation,
                           .name = name,
                           .rows = dimensions == 2 ? shape[0] : 1,
                           .columns = shape.back(),
                           .sparse = sparse});
  return absl::OkStatus();
}

absl::Status ReadActivation(const Reader& layer, Activation& activation) {
  static const std::map<std::string, Activation> kNames = {{"none", Activation::kNone},
                                                           {"relu", Activation::kRelu},
                                                           {"sigmoid", Activation::kSigmoid},
                                                           {"tanh", Activation::kTanh}};
  const std::string name = layer.String("activation", "none");
  const auto found = kNames.find(name);
  if (found == kNames.end()) return base::InvalidArgument("{}.activation: '{}' is unknown", layer.path(), name);
  activation = found->second;
  return absl::OkStatus();
}

absl::Status ReadLoss(const Reader& layer, LossKind& loss) {
  static const std::map<std::string, LossKind> kNames = {{"logLoss", LossKind::kLogistic},
                                                         {"mse", LossKind::kSquared},
                                                         {"mae", LossKind::kAbsolute},
                                                         {"crossEntropy", LossKind::kSoftmax},
                                                         {"output", LossKind::kOutput}};
  const std::string name = layer.String("loss", "logLoss");
  const auto found = kNames.find(name);
  if (found == kNames.end()) return base::InvalidArgument("{}.loss: '{}' is unknown", layer.path(), name);
  loss = found->second;
  return absl::OkStatus();
}

absl::Status Mismatch(const Reader& layer, const char* what, int64_t is, int64_t must_be) {
  return base::InvalidArgument("{}: {} is {}, but must be {}", layer.path(), what, is, must_be);
}

// The fields of an embedding: all where the layer does not say.
absl::Status ReadEmbedding(const Reader& layer, int64_t outputs, const Graph& graph, Operation& operation) {
  operation.sum_fields = layer.String("combine", "concatenate") == "sum";
  operation.reads_numerics = layer.String("input", "ids, numerics") != "ids";
  MEDLEY_RETURN_IF_ERROR(ReadParameter(layer, "table", static_cast<int>(graph.operations.size()), true, operation));
  ParameterSpec& table = operation.parameters[0];
  const int64_t first = layer.Int("firstField", 0);
  const int64_t fields = layer.Int("fields", graph.shape.fields);
  if (first < 0 || fields < 0 || first > graph.shape.fields || fields > graph.shape.fields - first) {
    return base::InvalidArgument("{}.fields: the ids of a sample are [0, {}), not [{}, {} + {})", layer.path(),
                                 graph.shape.fields, first, first, fields);
  }
  table.first_field = static_cast<int>(first);
  table.fields = static_cast<int>(fields);
  for (const ParameterSpec& other : graph.Parameters(/*sparse=*/true)) {
    if (first + fields <= other.first_field || other.first_field + other.fields <= first) continue;
    return base::InvalidArgument("{}.fields: another Embedding has some of them", layer.path());
  }
  const int64_t width =
      (operation.sum_fields ? 1 : fields) * table.columns + (operation.reads_numerics ? graph.shape.numerics : 0);
  return width == outputs ? absl::OkStatus() : Mismatch(layer, "outputs", outputs, width);
}

absl::Status ReadWeights(const Reader& layer, int64_t inputs, int64_t outputs, const Graph& graph,
                         Operation& operation) {
  const int index = static_cast<int>(graph.operations.size());
  MEDLEY_RETURN_IF_ERROR(ReadParameter(layer, "weight", index, false, operation));
  MEDLEY_RETURN_IF_ERROR(ReadParameter(layer, "bias", index, false, operation));
  const ParameterSpec& weight = operation.parameters[0];
  if (weight.rows != inputs) return Mismatch(layer, "the number of inputs", weight.rows, inputs);
  if (weight.columns != outputs) return Mismatch(layer, "outputs", outputs, weight.columns);
  if (operation.parameters[1].columns == outputs) return absl::OkStatus();
  return Mismatch(layer, "the length of the bias", operation.parameters[1].columns, outputs);
}

absl::Status ReadFullyConnected(const Reader& layer, int64_t outputs, const Graph& graph, Operation& operation) {
  const int index = static_cast<int>(graph.operations.size());
  operation.reads_numerics = layer.String("input", "previous") == "numerics";
  if (operation.reads_numerics != (index == 0)) {
    return base::InvalidArgument("{}.input: the first layer, and no other one, reads the inputs", layer.path());
  }
  MEDLEY_RETURN_IF_ERROR(ReadActivation(layer, operation.activation));
  return ReadWeights(layer, index == 0 ? graph.shape.numerics : operation.input_width, outputs, graph, operation);
}

// The layers that it names, which are before it and in their order.
absl::Status ReadNamedInputs(const Reader& layer, const Graph& graph, Operation& operation) {
  operation.inputs.clear();
  for (const std::string& name : layer.Strings("inputs")) {
    const auto found = std::ranges::find(graph.operations, name, &Operation::name);
    if (found == graph.operations.end()) {
      return base::InvalidArgument("{}.inputs: no layer before it is '{}'", layer.path(), name);
    }
    const int index = static_cast<int>(found - graph.operations.begin());
    if (!operation.inputs.empty() && index <= operation.inputs.back()) {
      return base::InvalidArgument("{}.inputs: must be different layers, in their order", layer.path());
    }
    operation.inputs.push_back(index);
  }
  return absl::OkStatus();
}

// A layer with vectors, a Concat or a Cross.
absl::Status ReadVectorLayer(const Reader& layer, int64_t outputs, const Graph& graph, Operation& operation) {
  const model::LayerKind& kind = *model::LayerKindNamed(KindName(operation.kind));
  const auto inputs = static_cast<int>(operation.inputs.size());
  if (inputs < kind.least_inputs || inputs > kind.most_inputs) {
    return base::InvalidArgument("{}.inputs: must be {} to {} layers before it, not {}", layer.path(),
                                 kind.least_inputs, kind.most_inputs, inputs);
  }
  for (const auto& [name, field] : {std::pair("dim", &operation.dim), std::pair("first", &operation.first)}) {
    const int64_t value = layer.Int(name, 0);
    if (value < 0 || value > kMaxWidth)
      return base::InvalidArgument("{}.{}: {} is out of range", layer.path(), name, value);
    *field = static_cast<int>(value);
  }
  if ((kind.fields & model::kNeedsDim) != 0 && operation.dim == 0) {
    return base::InvalidArgument("{}.dim: is required", layer.path());
  }
  const std::string combine = layer.String("combine", "sum");
  if (combine != "sum" && combine != "mean" && combine != "max") {
    return base::InvalidArgument("{}.combine: '{}' is unknown", layer.path(), combine);
  }
  operation.combine = combine == "max" ? Combine::kMax : combine == "mean" ? Combine::kMean : Combine::kSum;
  std::vector<model::NamedWidth> widths;
  operation.input_width = 0;
  for (const int input : operation.inputs) {
    const Operation& from = graph.operations[static_cast<size_t>(input)];
    widths.push_back({from.name, from.output_width});
    operation.input_width += from.output_width;
  }
  const bool slices = operation.kind == OperationKind::kSlice;
  const int64_t vectors = slices && operation.dim > 0 ? std::max<int64_t>(1, operation.input_width / operation.dim) : 1;
  const absl::StatusOr<int64_t> width =
      model::VectorLayerWidth({kind.name, operation.dim, operation.first, outputs / vectors}, widths);
  if (!width.ok()) return base::InvalidArgument("{}: {}", layer.path(), base::Message(width.status()));
  if (*width != outputs || outputs == 0) return Mismatch(layer, "outputs", outputs, *width);
  if (operation.kind == OperationKind::kAdd || operation.kind == OperationKind::kMultiply) {
    operation.input_width = operation.output_width;
  }
  if (operation.kind != OperationKind::kCross) return absl::OkStatus();
  return ReadWeights(layer, outputs, outputs, graph, operation);
}

}  // namespace

absl::Status ReadExportedLayer(const Reader& layer, int outputs_of_task, Graph& graph) {
  const int last = static_cast<int>(graph.operations.size()) - 1;
  Operation operation;
  operation.name = layer.RequiredString("name");
  const std::string name = layer.RequiredString("kind");
  const std::optional<OperationKind> kind = KindNamed(name);
  if (!kind) return base::InvalidArgument("{}.kind: '{}' is unknown", layer.path(), name);
  operation.kind = *kind;
  const int64_t outputs = layer.Int("outputs", 0);
  if (outputs < 0 || outputs > kMaxWidth)
    return base::InvalidArgument("{}.outputs: {} is out of range", layer.path(), outputs);
  operation.output_width = static_cast<int>(outputs);
  const bool reads = *kind == OperationKind::kEmbedding || *kind == OperationKind::kNumerics;
  if (layer.Has("inputs") && !reads && *kind != OperationKind::kImported) {
    MEDLEY_RETURN_IF_ERROR(ReadNamedInputs(layer, graph, operation));
  } else if (last >= 0 && !reads) {
    operation.inputs = {last};
  }
  if (operation.inputs.size() == 1) {
    operation.input_width = graph.operations[static_cast<size_t>(operation.inputs[0])].output_width;
  }
  switch (*kind) {
    case OperationKind::kEmbedding:
      MEDLEY_RETURN_IF_ERROR(ReadEmbedding(layer, outputs, graph, operation));
      break;
    case OperationKind::kNumerics:
      operation.reads_numerics = true;
      if (outputs != graph.shape.numerics) return Mismatch(layer, "outputs", outputs, graph.shape.numerics);
      break;
    case OperationKind::kFullyConnected:
      if (operation.inputs.size() > 1) return base::InvalidArgument("{}.inputs: must be one layer", layer.path());
      MEDLEY_RETURN_IF_ERROR(ReadFullyConnected(layer, outputs, graph, operation));
      break;
    case OperationKind::kLoss:
      if (operation.inputs.size() > 1) return base::InvalidArgument("{}.inputs: must be one layer", layer.path());
      operation.output_width = 0;
      if (operation.input_width != outputs_of_task && outputs_of_task > 0) {
        return Mismatch(layer, "the number of inputs", operation.input_width, outputs_of_task);
      }
      MEDLEY_RETURN_IF_ERROR(ReadLoss(layer, operation.loss));
      break;
    case OperationKind::kImported:
      operation.module_kind = layer.String("module");
      break;
    default:
      MEDLEY_RETURN_IF_ERROR(ReadVectorLayer(layer, outputs, graph, operation));
  }
  graph.operations.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::Status CheckLayerUses(const Graph& graph) {
  std::vector<bool> used(graph.operations.size(), false);
  for (const Operation& operation : graph.operations) {
    for (const int input : operation.inputs) used[static_cast<size_t>(input)] = true;
  }
  for (size_t i = 0; i + 1 < used.size(); ++i) {
    if (!used[i]) return base::InvalidArgument("layer {}: no layer uses its outputs", graph.operations[i].name);
  }
  return absl::OkStatus();
}

}  // namespace medley::worker

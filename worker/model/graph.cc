#include "worker/model/graph.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <set>

#include "common/base/status.h"
#include "common/model/model.h"
#include "worker/data/schema.h"
#include "worker/model/graph_builder.h"
#include "worker/model/layer_table.h"
#include "worker/model/vector_layers.h"

namespace medley::worker {
namespace {

// The hidden layers of `residual`: the output of each addition goes on.
void BuildResidual(const model::ModelSpec& spec, GraphBuilder& graph) {
  const std::vector<int>& hidden = spec.hidden;
  int trunk = -1;  // what the next addition adds
  int since = 0;   // layers after it
  for (size_t i = 0; i < hidden.size(); ++i) {
    graph.Hidden(fmt::format("fc{}", i + 1), hidden[i], spec.dropout);
    if (trunk >= 0 && ++since < 2) continue;
    if (trunk >= 0 && graph.Width(trunk) == hidden[i]) {
      graph.Combine(fmt::format("add{}", i + 1), OperationKind::kAdd, trunk);
    }
    trunk = graph.last();
    since = 0;
  }
}

void BuildTowers(const model::ModelSpec& spec, GraphBuilder& graph) {
  const int fields = graph.AllFields().count;
  const int first = (fields + 1) / 2;
  int other = -1;
  for (int tower = 1; tower <= 2; ++tower) {
    other = graph.last();
    graph.Embedding(fmt::format("embedding_{}", tower), spec.embedding_dim, spec.embedding_rows, false,
                    tower == 1 ? Fields{0, first} : Fields{first, fields - first}, tower == 2);
    int number = 0;
    for (const int width : spec.hidden) {
      graph.Hidden(fmt::format("fc{}_{}", tower, ++number), width, spec.dropout);
    }
  }
  graph.Combine("product", OperationKind::kMultiply, other);
}

void BuildNamed(const model::ModelSpec& spec, int outputs, LossKind loss, GraphBuilder& graph) {
  const bool logistic = spec.name == "logistic";
  if (spec.name == "two-tower") {
    BuildTowers(spec, graph);
  } else {
    if (spec.name != "mlp" && graph.AllFields().count > 0) {
      graph.Embedding("embedding", logistic ? outputs : spec.embedding_dim, spec.embedding_rows, logistic,
                      graph.AllFields());
    }
    if (spec.name == "residual") {
      BuildResidual(spec, graph);
    } else if (!logistic) {
      int number = 0;
      for (const int width : spec.hidden) {
        graph.Hidden(fmt::format("fc{}", ++number), width, spec.dropout);
      }
    }
  }
  graph.FullyConnected("fc_out", outputs, Activation::kNone, logistic);
  graph.Loss("loss", loss);
}

const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return "relu";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kNone:
      break;
  }
  return "none";
}

void DescribeTable(const ParameterSpec& table, model::Layer& layer) {
  layer.kind = "EMBEDDING";
  layer.sparse = true;
  layer.input_bytes = 8.0 * table.fields;
  layer.attributes["fields"] = std::to_string(table.fields);
  layer.attributes["dim"] = std::to_string(table.columns);
  layer.attributes["rows"] = std::to_string(table.rows);
}

model::Layer ToLayer(const Operation& operation, const SampleShape& shape) {
  model::Layer layer;
  layer.name = operation.name;
  layer.output_bytes = 4.0 * operation.output_width;
  layer.input_bytes = 4.0 * operation.input_width;
  for (const ParameterSpec& parameter : operation.parameters) {
    layer.weight_bytes += 4.0 * static_cast<double>(parameter.Size());
  }
  switch (operation.kind) {
    case OperationKind::kEmbedding:
      DescribeTable(operation.parameters.front(), layer);
      if (operation.reads_numerics) layer.input_bytes += 4.0 * shape.numerics;
      break;
    case OperationKind::kFullyConnected:
      layer.kind = "FULLY_CONNECTED";
      if (operation.reads_numerics) layer.input_bytes = 4.0 * shape.numerics;
      layer.attributes["units"] = std::to_string(operation.output_width);
      layer.attributes["activation"] = ActivationName(operation.activation);
      break;
    case OperationKind::kAdd:
    case OperationKind::kMultiply:
      layer.kind = PlannedKind(operation.kind);
      layer.input_bytes *= static_cast<double>(operation.inputs.size());
      break;
    case OperationKind::kLoss:
      layer.kind = "LOSS";
      break;
    case OperationKind::kNumerics:
      layer.input_bytes = layer.output_bytes;
      break;
    case OperationKind::kImported:
      layer.kind = absl::AsciiStrToUpper(operation.module_kind);
      layer.attributes["flops"] = fmt::format("{:.0f}", operation.flops);
      if (operation.HasTable()) DescribeTable(operation.parameters.front(), layer);
      break;
    default:
      break;
  }
  if (!layer.kind.empty()) return layer;
  layer.kind = PlannedKind(operation.kind);
  layer.attributes["flops"] = fmt::format("{:.0f}", VectorLayerFlops(operation));
  const double kept = 4.0 * KeptFloats(operation);
  if (kept > layer.output_bytes) layer.attributes["activationBytes"] = fmt::format("{:.0f}", kept);
  return layer;
}

}  // namespace

std::vector<ParameterSpec> ParametersOf(std::span<const Operation> operations, bool sparse) {
  std::vector<ParameterSpec> found;
  for (const Operation& operation : operations) {
    for (const ParameterSpec& parameter : operation.parameters) {
      if (parameter.sparse == sparse) found.push_back(parameter);
    }
  }
  return found;
}

namespace {

// Parameters that several operations have, which updates must change alike: a line "FLOATS NAME" for each.
void DescribeShared(const Graph& graph, model::Model& model) {
  std::set<std::string> shared;
  for (const ParameterSpec& parameter : graph.Parameters(/*sparse=*/false)) {
    if (parameter.copy_of >= 0 && parameter.role == ParameterRole::kTrained) shared.insert(parameter.name);
  }
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    for (const ParameterSpec& parameter : graph.operations[i].parameters) {
      if (graph.operations[i].kind != OperationKind::kImported || !shared.contains(parameter.name)) continue;
      model.layers[i].attributes["shared"] += fmt::format("{} {}\n", parameter.Size(), parameter.name);
    }
  }
}

}  // namespace

model::Model Graph::ToModel() const {
  model::Model model;
  model.name = name;
  model.clips_gradients = clips_gradients;
  for (const Operation& operation : operations) {
    model::Layer& layer = model.layers.emplace_back(ToLayer(operation, shape));
    const int index = static_cast<int>(model.layers.size()) - 1;
    if (operation.inputs.empty() && index > 0) layer.inputs = {-1};  // reads the batch only
    if (!operation.inputs.empty() && operation.inputs != std::vector<int>{index - 1}) layer.inputs = operation.inputs;
    if (operation.kind == OperationKind::kImported && operation.reads_batch && !operation.inputs.empty()) {
      layer.inputs = operation.inputs;
      layer.inputs.insert(layer.inputs.begin(), -1);
    }
  }
  DescribeShared(*this, model);
  return model;
}

LossKind LossOf(const model::JobSpec& spec) {
  switch (spec.data.schema.task) {
    case model::Task::kRegression:
      return spec.model.loss == "mae" ? LossKind::kAbsolute : LossKind::kSquared;
    case model::Task::kMultiClass:
      return LossKind::kSoftmax;
    case model::Task::kOwnLoss:
      return LossKind::kOutput;
    case model::Task::kBinary:
    case model::Task::kMultiLabel:
      break;
  }
  return LossKind::kLogistic;
}

absl::StatusOr<Graph> BuildGraph(const model::JobSpec& spec, int classes) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(spec));
  Graph graph;
  graph.name = spec.model.name.empty() ? "layers" : spec.model.name;
  graph.shape = ShapeOf(spec.data.schema);
  graph.clips_gradients = spec.training.clip_norm.has_value();
  GraphBuilder builder(graph);
  const bool unknown = model::OutputsOf(spec.data.schema) == 0;
  if (spec.model.layers.empty()) {
    const int outputs = unknown ? (classes > 0 ? classes : kUnknownClasses) : model::OutputsOf(spec.data.schema);
    BuildNamed(spec.model, outputs, LossOf(spec), builder);
  } else {
    MEDLEY_RETURN_IF_ERROR(AddLayers(spec, LossOf(spec), builder));
    graph.shape.fields += graph.operations.back().negatives;  // BatchAssembler draws them
  }
  if (unknown && classes > 0 && graph.Outputs() != classes) {
    return base::InvalidArgument(
        "spec.model.layers: the layer before the Loss has out {}, but the training data have {} classes",
        graph.Outputs(), classes);
  }
  return graph;
}

absl::StatusOr<Graph> PredictionGraph(const model::JobSpec& spec, int classes) {
  model::JobSpec without = spec;
  for (model::LayerSpec& layer : without.model.layers) layer.negatives = 0;
  MEDLEY_ASSIGN_OR_RETURN(const Graph trained, BuildGraph(spec, classes));
  MEDLEY_ASSIGN_OR_RETURN(Graph graph, BuildGraph(without, classes));
  const std::vector<ParameterSpec> was = trained.Parameters(/*sparse=*/false), is = graph.Parameters(/*sparse=*/false);
  for (size_t i = 0; i < is.size(); ++i) {
    if (is[i] == was[i]) continue;
    return base::InvalidArgument(
        "spec.model.layers: '{}' takes {} numbers with the drawn rows and {} without them, so it cannot have the same "
        "weights in predictions: only layers without weights may come after an Embedding with negatives",
        graph.operations[static_cast<size_t>(is[i].operation)].name, was[i].rows, is[i].rows);
  }
  return graph;
}

}  // namespace medley::worker

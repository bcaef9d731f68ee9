#include "worker/model/graph.h"

#include <fmt/format.h>

#include "common/base/status.h"
#include "worker/data/schema.h"

namespace medley::worker {
namespace {

constexpr float kEmbeddingScale = 0.05F;

// Builds the chain operation by operation; each takes the output width of the one before as its input width.
class ChainBuilder {
 public:
  explicit ChainBuilder(Graph& graph) : graph_(graph) {}

  void Embedding(std::string name, int dim, int64_t rows, bool sum_fields) {
    Operation operation;
    operation.kind = OperationKind::kEmbedding;
    operation.name = std::move(name);
    operation.sum_fields = sum_fields;
    operation.output_width = (sum_fields ? 1 : graph_.shape.fields) * dim + graph_.shape.numerics;
    operation.parameters = {{.operation = Index(),
                             .name = "table",
                             .rows = rows,
                             .columns = dim,
                             .sparse = true,
                             .initializer = sum_fields ? Initializer::kZero : Initializer::kUniform,
                             .scale = kEmbeddingScale}};
    Add(std::move(operation));
  }

  void FullyConnected(std::string name, int out, Activation activation, bool pass_first = false) {
    Operation operation;
    operation.kind = OperationKind::kFullyConnected;
    operation.name = std::move(name);
    operation.reads_numerics = graph_.operations.empty();
    operation.input_width = width_;
    operation.output_width = out;
    operation.activation = activation;
    operation.pass_first = pass_first;
    const int in = operation.reads_numerics ? graph_.shape.numerics : width_;
    operation.parameters = {
        {.operation = Index(),
         .name = "weight",
         .rows = in,
         .columns = out,
         .initializer = activation == Activation::kRelu ? Initializer::kHeUniform : Initializer::kXavierUniform},
        {.operation = Index(), .name = "bias", .rows = 1, .columns = out}};
    Add(std::move(operation));
  }

  void Loss(std::string name, LossKind loss) {
    Operation operation;
    operation.kind = OperationKind::kLoss;
    operation.name = std::move(name);
    operation.loss = loss;
    operation.input_width = width_;
    Add(std::move(operation));
  }

 private:
  int Index() const { return static_cast<int>(graph_.operations.size()); }
  void Add(Operation operation) {
    width_ = operation.output_width;
    graph_.operations.push_back(std::move(operation));
  }

  Graph& graph_;
  int width_ = 0;
};

void BuildNamed(const model::ModelSpec& spec, int outputs, LossKind loss, ChainBuilder& chain) {
  const bool logistic = spec.name == "logistic";
  if (spec.name != "mlp") {
    chain.Embedding("embedding", logistic ? outputs : spec.embedding_dim, spec.embedding_rows, logistic);
  }
  int number = 0;
  if (!logistic) {
    for (const int width : spec.hidden) {
      chain.FullyConnected(fmt::format("fc{}", ++number), width, Activation::kRelu);
    }
  }
  chain.FullyConnected("fc_out", outputs, Activation::kNone, logistic);
  chain.Loss("loss", loss);
}

Activation ActivationOf(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "tanh") return Activation::kTanh;
  return Activation::kNone;
}

void BuildLayers(const model::ModelSpec& spec, LossKind loss, ChainBuilder& chain) {
  for (const model::LayerSpec& layer : spec.layers) {
    if (layer.kind == "Embedding") {
      chain.Embedding(layer.name, layer.out, spec.embedding_rows, false);
    } else if (layer.kind == "FullyConnected") {
      chain.FullyConnected(layer.name, layer.out, ActivationOf(layer.activation));
    } else {
      chain.Loss(layer.name, loss);
    }
  }
}

LossKind LossOf(const model::JobSpec& spec) {
  switch (spec.data.schema.task) {
    case model::Task::kRegression:
      return spec.model.loss == "mae" ? LossKind::kAbsolute : LossKind::kSquared;
    case model::Task::kMultiClass:
      return LossKind::kSoftmax;
    case model::Task::kBinary:
    case model::Task::kMultiLabel:
      break;
  }
  return LossKind::kLogistic;
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
      layer.kind = "EMBEDDING";
      layer.sparse = true;
      layer.input_bytes = 8.0 * shape.fields + 4.0 * shape.numerics;
      layer.attributes["fields"] = std::to_string(shape.fields);
      layer.attributes["dim"] = std::to_string(operation.parameters.front().columns);
      layer.attributes["rows"] = std::to_string(operation.parameters.front().rows);
      break;
    case OperationKind::kFullyConnected:
      layer.kind = "FULLY_CONNECTED";
      if (operation.reads_numerics) layer.input_bytes = 4.0 * shape.numerics;
      layer.attributes["units"] = std::to_string(operation.output_width);
      layer.attributes["activation"] = ActivationName(operation.activation);
      break;
    case OperationKind::kLoss:
      layer.kind = "LOSS";
      break;
  }
  return layer;
}

}  // namespace

std::vector<ParameterSpec> Graph::Parameters(bool sparse) const {
  std::vector<ParameterSpec> found;
  for (const Operation& operation : operations) {
    for (const ParameterSpec& parameter : operation.parameters) {
      if (parameter.sparse == sparse) found.push_back(parameter);
    }
  }
  return found;
}

model::Model Graph::ToModel() const {
  model::Model model;
  model.name = name;
  for (const Operation& operation : operations) model.layers.push_back(ToLayer(operation, shape));
  return model;
}

absl::StatusOr<Graph> BuildGraph(const model::JobSpec& spec, int classes) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(spec));
  Graph graph;
  graph.name = spec.model.name.empty() ? "layers" : spec.model.name;
  graph.shape = ShapeOf(spec.data.schema);
  ChainBuilder chain(graph);
  const bool unknown = model::OutputsOf(spec.data.schema) == 0;
  if (spec.model.layers.empty()) {
    const int outputs = unknown ? (classes > 0 ? classes : kUnknownClasses) : model::OutputsOf(spec.data.schema);
    BuildNamed(spec.model, outputs, LossOf(spec), chain);
  } else {
    BuildLayers(spec.model, LossOf(spec), chain);
  }
  if (unknown && classes > 0 && graph.Outputs() != classes) {
    return base::InvalidArgument(
        "spec.model.layers: the layer before the Loss has out {}, but the training data have {} classes",
        graph.Outputs(), classes);
  }
  return graph;
}

}  // namespace medley::worker

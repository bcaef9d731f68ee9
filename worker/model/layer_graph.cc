#include <algorithm>

#include "common/base/status.h"
#include "common/model/layer_kinds.h"
#include "worker/model/graph_builder.h"
#include "worker/model/layer_table.h"

namespace medley::worker {
namespace {

Activation ActivationNamed(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "tanh") return Activation::kTanh;
  return Activation::kNone;
}

Combine CombineNamed(const std::string& name) {
  if (name == "max") return Combine::kMax;
  return name == "mean" ? Combine::kMean : Combine::kSum;
}

void AddEmbedding(const model::LayerSpec& layer, int fields, int64_t rows, GraphBuilder& graph) {
  graph.Embedding(layer.name, layer.out, rows, layer.combine == "sum", {layer.first, fields + layer.negatives},
                  layer.numerics);
  ParameterSpec& table = graph.added().parameters.front();
  table.initializer = Initializer::kUniform;
  table.drawn = layer.negatives;
}

// y = x0 * (x W + b) + x.
void AddCross(const model::LayerSpec& layer, std::vector<int> inputs, GraphBuilder& graph) {
  const int width = graph.Width(inputs.front()), operation = graph.last() + 1;
  graph.Join(layer.name, OperationKind::kCross, std::move(inputs), width);
  graph.added().parameters = {{.operation = operation,
                               .name = "weight",
                               .rows = width,
                               .columns = width,
                               .initializer = Initializer::kXavierUniform},
                              {.operation = operation, .name = "bias", .rows = 1, .columns = width}};
}

}  // namespace

absl::Status AddLayers(const model::JobSpec& spec, LossKind loss, GraphBuilder& graph) {
  const std::vector<model::LayerSpec>& layers = spec.model.layers;
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<model::ResolvedLayer> resolved,
                          model::ResolveLayers(spec.model, spec.data.schema));
  std::vector<int> operation_of(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const model::LayerSpec& layer = layers[i];
    std::vector<int> inputs;
    for (const int input : resolved[i].inputs) inputs.push_back(operation_of[static_cast<size_t>(input)]);
    if (layer.kind == "Dropout") {
      graph.Dropout(layer.fraction);
    } else if (layer.kind == "Embedding") {
      AddEmbedding(layer, resolved[i].fields, spec.model.embedding_rows, graph);
    } else if (layer.kind == "FullyConnected" && inputs.empty()) {
      graph.FullyConnected(layer.name, layer.out, ActivationNamed(layer.activation));
    } else if (layer.kind == "FullyConnected") {
      graph.From(inputs.front()).FullyConnected(layer.name, layer.out, ActivationNamed(layer.activation));
    } else if (layer.kind == "Cross") {
      AddCross(layer, std::move(inputs), graph);
    } else if (layer.kind == "Loss") {
      graph.From(inputs.front()).Loss(layer.name, loss);
      graph.added().negatives = layer.negatives;
    } else {
      graph.Join(layer.name, *KindNamed(layer.kind), std::move(inputs), static_cast<int>(resolved[i].width));
      Operation& added = graph.added();
      added.reads_numerics = added.kind == OperationKind::kNumerics;
      added.dim = layer.dim;
      added.first = layer.first;
      added.combine = CombineNamed(layer.combine);
      if (added.kind == OperationKind::kAdd || added.kind == OperationKind::kMultiply) {
        added.input_width = added.output_width;
      }
    }
    operation_of[i] = graph.last();
  }
  return absl::OkStatus();
}

}  // namespace medley::worker

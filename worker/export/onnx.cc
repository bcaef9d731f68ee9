#include "worker/export/onnx.h"

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "worker/export/onnx_program.h"
#include "worker/export/onnx_vectors.h"
#include "worker/export/onnx_writer.h"

namespace medley::worker {
namespace {

constexpr int kOpset = 13;

const char* OnnxActivation(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return "Relu";
    case Activation::kSigmoid:
      return "Sigmoid";
    case Activation::kTanh:
      return "Tanh";
    case Activation::kNone:
      break;
  }
  return nullptr;
}

std::string AddEmbedding(const Operation& operation, const SampleShape& shape, OnnxWriter& graph) {
  const std::string& name = operation.name;
  const ParameterSpec& table = operation.parameters[0];
  std::string ids = "ids";
  if (table.fields != shape.fields) {
    graph.Ints(name + ".first", {table.first_field});
    graph.Ints(name + ".end", {table.first_field + table.fields});
    graph.Ints(name + ".columns", {1});
    ids = graph.Node("Slice", {ids, name + ".first", name + ".end", name + ".columns"}, name + ".ids");
  }
  std::string x = graph.Node("Gather", {name + ".table", ids}, name + ".rows");
  if (operation.sum_fields) {
    graph.Ints(name + ".axes", {1});
    x = graph.Node("ReduceSum", {x, name + ".axes"}, name + ".sum", {{"keepdims", int64_t{0}}});
  } else {
    graph.Ints(name + ".shape", {-1, table.fields * table.columns});
    x = graph.Node("Reshape", {x, name + ".shape"}, name + ".flat");
  }
  if (shape.numerics == 0 || !operation.reads_numerics) return x;
  return graph.Node("Concat", {x, "numerics"}, name + ".out", {{"axis", int64_t{1}}});
}

std::string AddLinear(const Operation& operation, const std::string& x, OnnxWriter& graph) {
  const std::string& name = operation.name;
  const std::string y = graph.Node("Gemm", {x, name + ".weight", name + ".bias"}, name + ".linear");
  const char* activation = OnnxActivation(operation.activation);
  return activation == nullptr ? y : graph.Node(activation, {y}, name + ".out");
}

}  // namespace

void AddOnnxOutput(const ExportedModel& model, std::string x, OnnxWriter& graph) {
  const auto outputs = static_cast<int64_t>(model.graph.Outputs());
  if (model.schema.task == model::Task::kMultiClass || model.schema.task == model::Task::kMultiLabel) {
    const int64_t tokens = model.schema.task == model::Task::kMultiClass ? model.schema.label_count : 1;
    if (tokens > 1) {  // samples x tokens x classes
      graph.Output("probabilities", {tokens, outputs / tokens});
      graph.Ints("tokens", {-1, tokens, outputs / tokens});
      x = graph.Node("Reshape", {x, "tokens"}, "logits.tokens");
      graph.Node("Softmax", {x}, "probabilities", {{"axis", int64_t{2}}});
      return;
    }
    graph.Output("probabilities", {outputs});
    if (model.schema.task == model::Task::kMultiLabel) {
      graph.Node("Sigmoid", {x}, "probabilities");
    } else {
      graph.Node("Softmax", {x}, "probabilities", {{"axis", int64_t{1}}});
    }
    return;
  }
  graph.Ints("all", {-1});
  if (model.schema.task == model::Task::kRegression) {
    const LabelTransform& label = model.transform.label;
    graph.Scalar("label.deviation", static_cast<float>(label.deviation));
    graph.Scalar("label.mean", static_cast<float>(label.mean));
    x = graph.Node("Mul", {x, "label.deviation"}, "label.scaled");
    x = graph.Node("Add", {x, "label.mean"}, "label.value");
    if (label.log) {
      graph.Scalar("label.one", 1);
      x = graph.Node("Exp", {x}, "label.exponential");
      x = graph.Node("Sub", {x, "label.one"}, "label.number");
    }
    if (outputs > 1) {
      graph.Output("value", {outputs});
      graph.Node("Identity", {x}, "value");
      return;
    }
    graph.Output("value", {});
    graph.Node("Reshape", {x, "all"}, "value");
    return;
  }
  if (model.schema.task == model::Task::kOwnLoss) {
    graph.Output("loss", {});
    graph.Node("Reshape", {x, "all"}, "loss");
    return;
  }
  x = graph.Node("Sigmoid", {x}, "sigmoid");
  graph.Output("probability", {});
  graph.Node("Reshape", {x, "all"}, "probability");
}

absl::StatusOr<std::string> ToOnnx(const LoadedModel& model) {
  if (model.model.FromPyTorch()) return ProgramToOnnx(model);
  const Graph& from = model.model.graph;
  OnnxWriter graph(kOpset);
  int64_t bytes = 0;
  for (const ExportedTensor& tensor : TensorsOf(from)) {
    bytes += tensor.bytes();
    constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 20);
    if (bytes > kMost) return base::ResourceExhausted("the weights are larger than the 2 GiB of an ONNX file");
    const std::vector<float>& values = model.weights.at(tensor.name);
    graph.Tensor(tensor.name, kOnnxFloat, tensor.shape,
                 {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  if (!from.Parameters(/*sparse=*/true).empty()) graph.Input("ids", kOnnxInt64, {from.shape.fields});
  if (from.shape.numerics > 0) graph.Input("numerics", kOnnxFloat, {from.shape.numerics});
  std::vector<std::string> outputs;  // names, by operation
  for (const Operation& operation : from.operations) {
    const auto input = [&](size_t k) { return outputs[static_cast<size_t>(operation.inputs[k])]; };
    switch (operation.kind) {
      case OperationKind::kEmbedding:
        outputs.push_back(AddEmbedding(operation, from.shape, graph));
        break;
      case OperationKind::kFullyConnected:
        outputs.push_back(AddLinear(operation, operation.inputs.empty() ? "numerics" : input(0), graph));
        break;
      case OperationKind::kNumerics:
        outputs.emplace_back("numerics");
        break;
      case OperationKind::kLoss:
        AddOnnxOutput(model.model, input(0), graph);
        break;
      case OperationKind::kImported:
        break;  // of models from PyTorch only
      default: {
        std::vector<OnnxInput> inputs;
        for (const int index : operation.inputs) {
          const auto at = static_cast<size_t>(index);
          inputs.push_back({outputs[at], from.operations[at].output_width});
        }
        outputs.push_back(AddOnnxVectors(operation, inputs, graph));
      }
    }
  }
  return graph.Finish(from.name);
}

}  // namespace medley::worker

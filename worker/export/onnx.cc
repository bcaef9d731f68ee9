#include "worker/export/onnx.h"

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "common/base/status.h"

namespace medley::worker {
namespace {

// One message in protobuf's wire format. Field numbers are those of ONNX 1.12.
class Message {
 public:
  Message& Int(int field, int64_t value) {
    Varint(static_cast<uint64_t>(field) << 3);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& Text(int field, std::string_view value) {
    Varint(static_cast<uint64_t>(field) << 3 | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& Sub(int field, const Message& value) { return Text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

constexpr int kFloat = 1;  // TensorProto.DataType
constexpr int kInt64 = 7;
constexpr int kAttributeInt = 2;  // AttributeProto.AttributeType
constexpr int kIrVersion = 7;
constexpr int kOpset = 13;

class OnnxGraph {
 public:
  void Input(std::string_view name, int type, int64_t columns) { graph_.Sub(11, ValueInfo(name, type, columns)); }
  void Output(std::string_view name, int64_t columns) { graph_.Sub(12, ValueInfo(name, kFloat, columns)); }

  void Tensor(std::string_view name, int type, const std::vector<int64_t>& shape, std::string_view bytes) {
    Message tensor;
    for (const int64_t size : shape) tensor.Int(1, size);
    graph_.Sub(5, tensor.Int(2, type).Text(8, name).Text(9, bytes));
  }
  void Ints(std::string_view name, const std::vector<int64_t>& values) {
    Tensor(name, kInt64, {std::ssize(values)},
           {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)});
  }
  void Scalar(std::string_view name, float value) {
    Tensor(name, kFloat, {1}, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  struct Attribute {
    std::string_view name;
    int64_t value;
  };
  // Adds a node and returns the name of its output.
  std::string Node(std::string_view type, std::initializer_list<std::string_view> inputs, std::string output,
                   std::initializer_list<Attribute> attributes = {}) {
    Message node;
    for (const std::string_view input : inputs) node.Text(1, input);
    node.Text(2, output).Text(3, output).Text(4, type);
    for (const Attribute& attribute : attributes) {
      node.Sub(5, Message().Text(1, attribute.name).Int(3, attribute.value).Int(20, kAttributeInt));
    }
    graph_.Sub(1, node);
    return output;
  }
  std::string Finish(std::string_view name) {
    graph_.Text(2, name);
    return Message()
        .Int(1, kIrVersion)
        .Text(2, "medley")
        .Sub(7, graph_)
        .Sub(8, Message().Text(1, "").Int(2, kOpset))
        .bytes();
  }

 private:
  // A tensor of samples x columns; of samples only with 0 columns.
  static Message ValueInfo(std::string_view name, int type, int64_t columns) {
    Message shape;
    shape.Sub(1, Message().Text(2, "samples"));
    if (columns > 0) shape.Sub(1, Message().Int(1, columns));
    return Message().Text(1, name).Sub(2, Message().Sub(1, Message().Int(1, type).Sub(2, shape)));
  }

  Message graph_;
};

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

std::string AddEmbedding(const Operation& operation, const SampleShape& shape, OnnxGraph& graph) {
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
    x = graph.Node("ReduceSum", {x, name + ".axes"}, name + ".sum", {{"keepdims", 0}});
  } else {
    graph.Ints(name + ".shape", {-1, table.fields * table.columns});
    x = graph.Node("Reshape", {x, name + ".shape"}, name + ".flat");
  }
  if (shape.numerics == 0 || !operation.reads_numerics) return x;
  return graph.Node("Concat", {x, "numerics"}, name + ".out", {{"axis", 1}});
}

std::string AddLinear(const Operation& operation, const std::string& x, OnnxGraph& graph) {
  const std::string& name = operation.name;
  const std::string y = graph.Node("Gemm", {x, name + ".weight", name + ".bias"}, name + ".linear");
  const char* activation = OnnxActivation(operation.activation);
  return activation == nullptr ? y : graph.Node(activation, {y}, name + ".out");
}

// Predictions from the outputs `x` of the last layer.
void AddOutput(const ExportedModel& model, std::string x, OnnxGraph& graph) {
  const auto outputs = static_cast<int64_t>(model.graph.Outputs());
  if (model.schema.task == model::Task::kMultiClass || model.schema.task == model::Task::kMultiLabel) {
    graph.Output("probabilities", outputs);
    if (model.schema.task == model::Task::kMultiLabel) {
      graph.Node("Sigmoid", {x}, "probabilities");
    } else {
      graph.Node("Softmax", {x}, "probabilities", {{"axis", 1}});
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
    graph.Output("value", 0);
    graph.Node("Reshape", {x, "all"}, "value");
    return;
  }
  x = graph.Node("Sigmoid", {x}, "sigmoid");
  graph.Output("probability", 0);
  graph.Node("Reshape", {x, "all"}, "probability");
}

}  // namespace

absl::StatusOr<std::string> ToOnnx(const LoadedModel& model) {
  const Graph& from = model.model.graph;
  OnnxGraph graph;
  int64_t bytes = 0;
  for (const ExportedTensor& tensor : TensorsOf(from)) {
    bytes += tensor.bytes();
    constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 20);
    if (bytes > kMost) return base::ResourceExhausted("the weights are larger than the 2 GiB of an ONNX file");
    const std::vector<float>& values = model.weights.at(tensor.name);
    graph.Tensor(tensor.name, kFloat, tensor.shape,
                 {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  if (!from.Parameters(/*sparse=*/true).empty()) graph.Input("ids", kInt64, from.shape.fields);
  if (from.shape.numerics > 0) graph.Input("numerics", kFloat, from.shape.numerics);
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
      case OperationKind::kAdd:
        outputs.push_back(graph.Node("Add", {input(0), input(1)}, operation.name + ".out"));
        break;
      case OperationKind::kMultiply:
        outputs.push_back(graph.Node("Mul", {input(0), input(1)}, operation.name + ".out"));
        break;
      case OperationKind::kLoss:
        AddOutput(model.model, input(0), graph);
        break;
      case OperationKind::kImported:
        break;  // ParseExportedModel has refused it
    }
  }
  return graph.Finish(from.name);
}

}  // namespace medley::worker

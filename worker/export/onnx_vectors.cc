#include "worker/export/onnx_vectors.h"

#include <vector>

#include "common/base/status.h"

namespace medley::worker {
namespace {

// The nodes of one layer. `Node` names its values by the layer.
class OnnxLayer {
 public:
  OnnxLayer(const Operation& operation, std::span<const OnnxInput> inputs, OnnxWriter& graph)
      : operation_(operation), name_(operation.name), inputs_(inputs), graph_(graph) {}

  std::string Concat() { return graph_.Node("Concat", Names(), name_ + ".joined", {{"axis", int64_t{1}}}); }

  std::string Add() {
    std::string sum = inputs_[0].name;
    for (size_t k = 1; k < inputs_.size(); ++k) sum = Node("Add", {sum, inputs_[k].name}, "sum" + std::to_string(k));
    return sum;
  }

  std::string Multiply() { return Node("Mul", {inputs_[0].name, inputs_[1].name}, "out"); }

  std::string Cross() {
    const std::string product = Node("Gemm", {inputs_.back().name, name_ + ".weight", name_ + ".bias"}, "linear");
    return Node("Add", {Node("Mul", {inputs_.front().name, product}, "product"), inputs_.back().name}, "out");
  }

  std::string Slice() {
    const int64_t dim = Dim(), vectors = inputs_[0].width / dim, kept = operation_.output_width / vectors;
    Ints("first", {operation_.first});
    Ints("end", {operation_.first + kept});
    Ints("axis", {2});
    const std::string part =
        Node("Slice", {Vectors(inputs_[0], "vectors"), name_ + ".first", name_ + ".end", name_ + ".axis"}, "part");
    return Flat(part, operation_.output_width);
  }

  std::string Pool() {
    const std::string all = All();
    if (operation_.combine == Combine::kSum) return SumOver(all, 1, "out");
    const std::string_view type = operation_.combine == Combine::kMax ? "ReduceMax" : "ReduceMean";
    return graph_.Node(type, {all}, name_ + ".out", {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
  }

  // Rows i > j of the products of all vectors with all.
  std::string Interaction() {
    const std::string all = All();
    const int64_t count = AllWidth() / operation_.dim;
    const std::string products = Node("MatMul", {all, Transposed(all)}, "products");
    std::vector<int64_t> places;
    for (int64_t i = 1; i < count; ++i) {
      for (int64_t j = 0; j < i; ++j) places.push_back(i * count + j);
    }
    Ints("pairs", places);
    return graph_.Node("Gather", {Flat(products, count * count), name_ + ".pairs"}, name_ + ".out",
                       {{"axis", int64_t{1}}});
  }

  std::string FactorizationMachine() {
    const std::string all = All();
    const std::string sum = SumOver(all, 1, "sum");
    const std::string squares = SumOver(Node("Mul", {all, all}, "squared"), 1, "squares");
    const std::string difference = Node("Sub", {Node("Mul", {sum, sum}, "of_sum"), squares}, "difference");
    graph_.Scalar(name_ + ".half", 0.5F);
    Ints("last", {1});
    const std::string all_sum =
        graph_.Node("ReduceSum", {difference, name_ + ".last"}, name_ + ".total", {{"keepdims", int64_t{1}}});
    return Node("Mul", {all_sum, name_ + ".half"}, "out");
  }

  std::string Match() {
    const std::string a = Vectors(inputs_[0], "a"), b = Vectors(inputs_[1], "b");
    return Flat(Node("MatMul", {a, Transposed(b)}, "products"), operation_.output_width);
  }

  std::string InnerProduct() {
    return SumOver(Node("Mul", {Vectors(inputs_[0], "a"), Vectors(inputs_[1], "b")}, "products"), 2, "out");
  }

  std::string Cosine() {
    const std::string a = Vectors(inputs_[0], "a"), b = Vectors(inputs_[1], "b");
    const std::string dot = SumOver(Node("Mul", {a, b}, "products"), 2, "dot");
    const std::string aa = SumOver(Node("Mul", {a, a}, "a2"), 2, "aa");
    const std::string bb = SumOver(Node("Mul", {b, b}, "b2"), 2, "bb");
    graph_.Scalar(name_ + ".least", 1e-8F);
    const std::string norm = Node("Sqrt", {Node("Mul", {aa, bb}, "norms")}, "norm");
    return Node("Div", {dot, Node("Max", {norm, name_ + ".least"}, "divisor")}, "out");
  }

 private:
  std::string Node(std::string_view type, std::initializer_list<std::string> inputs, const std::string& output) {
    return graph_.Node(type, inputs, name_ + "." + output);
  }
  void Ints(const std::string& name, const std::vector<int64_t>& values) { graph_.Ints(name_ + "." + name, values); }
  int64_t Dim() const { return operation_.dim > 0 ? operation_.dim : inputs_[0].width; }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const OnnxInput& input : inputs_) names.push_back(input.name);
    return names;
  }
  int64_t AllWidth() const {
    int64_t width = 0;
    for (const OnnxInput& input : inputs_) width += input.width;
    return width;
  }

  // samples x vectors x dim
  std::string Vectors(const OnnxInput& input, const std::string& name) {
    Ints(name + ".shape", {-1, input.width / Dim(), Dim()});
    return Node("Reshape", {input.name, name_ + "." + name + ".shape"}, name);
  }
  std::string All() { return Vectors({inputs_.size() > 1 ? Concat() : inputs_[0].name, AllWidth()}, "vectors"); }
  std::string Transposed(const std::string& value) {
    return graph_.Node("Transpose", {value}, name_ + ".transposed", {{"perm", std::vector<int64_t>{0, 2, 1}}});
  }
  std::string Flat(const std::string& value, int64_t width) {
    Ints("flat", {-1, width});
    return Node("Reshape", {value, name_ + ".flat"}, "flattened");
  }
  std::string SumOver(const std::string& value, int64_t axis, const std::string& name) {
    Ints(name + ".axes", {axis});
    return graph_.Node("ReduceSum", {value, name_ + "." + name + ".axes"}, name_ + "." + name,
                       {{"keepdims", int64_t{0}}});
  }

  const Operation& operation_;
  const std::string& name_;
  const std::span<const OnnxInput> inputs_;
  OnnxWriter& graph_;
};

}  // namespace

std::string AddOnnxVectors(const Operation& operation, std::span<const OnnxInput> inputs, OnnxWriter& graph) {
  OnnxLayer layer(operation, inputs, graph);
  switch (operation.kind) {
    case OperationKind::kConcat:
      return layer.Concat();
    case OperationKind::kAdd:
      return layer.Add();
    case OperationKind::kMultiply:
      return layer.Multiply();
    case OperationKind::kCross:
      return layer.Cross();
    case OperationKind::kSlice:
      return layer.Slice();
    case OperationKind::kPool:
      return layer.Pool();
    case OperationKind::kInteraction:
      return layer.Interaction();
    case OperationKind::kFactorizationMachine:
      return layer.FactorizationMachine();
    case OperationKind::kMatch:
      return layer.Match();
    case OperationKind::kInnerProduct:
      return layer.InnerProduct();
    case OperationKind::kCosine:
      return layer.Cosine();
    default:
      break;
  }
  MEDLEY_CHECK(false, "this kind of layer has no nodes");
  return "";
}

}  // namespace medley::worker

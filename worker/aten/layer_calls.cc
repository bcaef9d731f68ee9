#include "worker/aten/layer_calls.h"

#include <iterator>
#include <tuple>

#include "common/base/status.h"

namespace medley::worker::aten {
namespace {

using at::Tensor;

constexpr double kLeastSquare = 1e-16;  // of two norms, multiplied: as in worker/model/vector_products.cc

int64_t LengthOf(const Operation& operation, const Tensor& input) {
  return operation.dim > 0 ? operation.dim : input.size(1);
}

// The vectors of an input, or of all: samples x vectors x length.
Tensor VectorsOf(const Operation& operation, const Tensor& input) {
  return input.reshape({input.size(0), -1, LengthOf(operation, input)});
}
Tensor AllVectors(const Operation& operation, const std::vector<Tensor>& inputs) {
  return VectorsOf(operation, inputs.size() == 1 ? inputs.front() : at::cat(inputs, 1));
}

Tensor Sum(const std::vector<Tensor>& inputs) {
  Tensor sum = inputs.front();
  for (size_t k = 1; k < inputs.size(); ++k) sum = sum + inputs[k];
  return sum;
}

Tensor Slice(const Operation& operation, const Tensor& input) {
  const Tensor vectors = VectorsOf(operation, input);
  const int64_t kept = operation.output_width / vectors.size(1);
  return vectors.narrow(2, operation.first, kept).reshape({input.size(0), operation.output_width});
}

Tensor Pool(Combine combine, const Tensor& vectors) {
  switch (combine) {
    case Combine::kSum:
      return vectors.sum(1);
    case Combine::kMean:
      return vectors.sum(1) * (1 / static_cast<float>(vectors.size(1)));
    case Combine::kMax:
      return std::get<0>(vectors.max(1));  // of equal maxima the first has the gradient
  }
  return {};
}

// The products of vectors i > j.
Tensor Interaction(const Tensor& vectors, const Tensor& pairs) {
  const Tensor products = at::bmm(vectors, vectors.transpose(1, 2));
  return products.reshape({vectors.size(0), -1}).index_select(1, pairs);
}

Tensor FactorizationMachine(const Tensor& vectors) {
  const Tensor sums = vectors.sum(1), squares = (vectors * vectors).sum(1);
  return (sums * sums - squares).sum(1, true) / 2;
}

Tensor Match(const Operation& operation, const Tensor& a, const Tensor& b) {
  const Tensor products = at::bmm(VectorsOf(operation, a), VectorsOf(operation, b).transpose(1, 2));
  return products.reshape({a.size(0), operation.output_width});
}

Tensor Dots(const Tensor& a, const Tensor& b) { return (a * b).sum(2); }

Tensor Cosine(const Tensor& a, const Tensor& b) {
  return Dots(a, b) / (Dots(a, a) * Dots(b, b)).clamp_min(kLeastSquare).sqrt();
}

// How many vectors have so many pairs.
int64_t VectorsWith(int64_t pairs) {
  int64_t vectors = 1;
  while (vectors * (vectors - 1) / 2 < pairs) ++vectors;
  return vectors;
}

}  // namespace

absl::StatusOr<LayerConstants> ConstantsOf(const Operation& operation, const Place& place) {
  LayerConstants constants;
  if (operation.kind == OperationKind::kInteraction) {
    const int64_t vectors = VectorsWith(operation.output_width);
    std::vector<int64_t> pairs;
    for (int64_t i = 1; i < vectors; ++i) {
      for (int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
    }
    const at::Tensor host = at::from_blob(pairs.data(), {std::ssize(pairs)}, at::TensorOptions().dtype(at::kLong));
    MEDLEY_ASSIGN_OR_RETURN(constants.pairs, place.ToPlace(host.clone()));
  }
  if (operation.pass_first) {
    MEDLEY_ASSIGN_OR_RETURN(constants.identity, place.ToPlace(at::eye(operation.output_width)));
  }
  return constants;
}

Tensor VectorLayer(const Operation& operation, const std::vector<Tensor>& inputs, const LayerConstants& constants) {
  switch (operation.kind) {
    case OperationKind::kConcat:
      return at::cat(inputs, 1);
    case OperationKind::kAdd:
      return Sum(inputs);
    case OperationKind::kMultiply:
      return inputs[0] * inputs[1];
    case OperationKind::kSlice:
      return Slice(operation, inputs[0]);
    case OperationKind::kPool:
      return Pool(operation.combine, AllVectors(operation, inputs));
    case OperationKind::kInteraction:
      return Interaction(AllVectors(operation, inputs), constants.pairs);
    case OperationKind::kFactorizationMachine:
      return FactorizationMachine(AllVectors(operation, inputs));
    case OperationKind::kMatch:
      return Match(operation, inputs[0], inputs[1]);
    case OperationKind::kInnerProduct:
      return Dots(VectorsOf(operation, inputs[0]), VectorsOf(operation, inputs[1]));
    case OperationKind::kCosine:
      return Cosine(VectorsOf(operation, inputs[0]), VectorsOf(operation, inputs[1]));
    default:
      break;
  }
  TORCH_CHECK(false, "layer ", operation.name, " computes no vectors");
  return {};
}

Tensor FullyConnected(Activation activation, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensor z = at::addmm(bias, x, w);
  switch (activation) {
    case Activation::kNone:
      return z;
    case Activation::kRelu:
      return at::relu(z);
    case Activation::kSigmoid:
      return at::sigmoid(z);
    case Activation::kTanh:
      return at::tanh(z);
  }
  return z;
}

Tensor Cross(const Tensor& x0, const Tensor& x, const Tensor& w, const Tensor& bias) {
  return x0 * at::addmm(bias, x, w) + x;
}

}  // namespace medley::worker::aten

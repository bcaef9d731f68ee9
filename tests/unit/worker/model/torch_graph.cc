#include "tests/unit/worker/model/torch_graph.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#pragma GCC diagnostic pop

namespace medley::worker::testing {
namespace {

using at::Tensor;

Tensor TensorOf(std::span<const float> values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(values.data()), shape, at::kFloat).to(at::kDouble).clone();
}

Tensor Activated(Activation activation, const Tensor& x) {
  switch (activation) {
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kSigmoid:
      return at::sigmoid(x);
    case Activation::kTanh:
      return at::tanh(x);
    case Activation::kNone:
      break;
  }
  return x;
}

// samples x vectors x dim
Tensor VectorsOf(const Tensor& x, int dim) { return x.reshape({x.size(0), -1, dim > 0 ? dim : x.size(1)}); }

Tensor PooledOf(Combine combine, const Tensor& vectors) {
  if (combine == Combine::kMax) return std::get<0>(at::max(vectors, 1));
  return combine == Combine::kMean ? at::mean(vectors, 1) : at::sum(vectors, 1);
}

class TorchGraph {
 public:
  TorchGraph(const Graph& graph, const BatchView& batch, std::vector<Tensor>& dense, std::vector<Tensor>& rows)
      : graph_(graph),
        dense_(dense),
        rows_(rows),
        ids_(at::from_blob(const_cast<int32_t*>(batch.ids.data()), {batch.samples, graph.shape.fields}, at::kInt)
                 .to(at::kLong)),
        numerics_(TensorOf(batch.numerics, {batch.samples, graph.shape.numerics})),
        labels_(TensorOf(batch.labels, {batch.samples, graph.shape.labels})) {}

  Tensor Loss() {
    for (const Operation& operation : graph_.operations) values_.push_back(One(operation));
    return values_.back();
  }

 private:
  Tensor One(const Operation& operation) {
    std::vector<Tensor> in;
    for (const int input : operation.inputs) in.push_back(values_[static_cast<size_t>(input)]);
    switch (operation.kind) {
      case OperationKind::kEmbedding:
        return Embedding(operation);
      case OperationKind::kNumerics:
        return numerics_;
      case OperationKind::kFullyConnected: {
        const Tensor w = dense_[next_dense_++], b = dense_[next_dense_++];
        return Activated(operation.activation, at::matmul(in.empty() ? numerics_ : in[0], w) + b);
      }
      case OperationKind::kCross: {
        const Tensor w = dense_[next_dense_++], b = dense_[next_dense_++];
        return in.front() * (at::matmul(in.back(), w) + b) + in.back();
      }
      case OperationKind::kLoss:
        return LossOf(operation, in[0]);
      case OperationKind::kConcat:
        return at::cat(in, 1);
      case OperationKind::kAdd: {
        Tensor sum = in[0];
        for (size_t k = 1; k < in.size(); ++k) sum = sum + in[k];
        return sum;
      }
      case OperationKind::kMultiply:
        return in[0] * in[1];
      default:
        return OfVectors(operation, in);
    }
  }

  Tensor Embedding(const Operation& operation) {
    const ParameterSpec& table = operation.parameters.front();
    const Tensor found =
        rows_[next_rows_++].index({ids_.slice(1, table.first_field, table.first_field + table.fields)});
    const Tensor vectors = operation.sum_fields ? at::sum(found, 1) : found.flatten(1);
    return operation.reads_numerics ? at::cat({vectors, numerics_}, 1) : vectors;
  }

  static Tensor OfVectors(const Operation& operation, const std::vector<Tensor>& in) {
    std::vector<Tensor> vectors;
    for (const Tensor& x : in) vectors.push_back(VectorsOf(x, operation.dim));
    const Tensor all = vectors.size() == 1 ? vectors[0] : Tensor();
    switch (operation.kind) {
      case OperationKind::kSlice: {
        const int64_t kept = operation.output_width / all.size(1);
        return all.slice(2, operation.first, operation.first + kept).flatten(1);
      }
      case OperationKind::kMatch:
        return at::bmm(vectors[0], vectors[1].transpose(1, 2)).flatten(1);
      case OperationKind::kInnerProduct:
        return at::sum(vectors[0] * vectors[1], 2);
      case OperationKind::kCosine:
        return at::cosine_similarity(vectors[0], vectors[1], 2);
      default:
        break;
    }
    const Tensor joined = at::cat(vectors, 1);
    if (operation.kind == OperationKind::kPool) return PooledOf(operation.combine, joined);
    const Tensor products = at::bmm(joined, joined.transpose(1, 2));
    const Tensor places = at::tril_indices(joined.size(1), joined.size(1), -1, at::kLong);
    const Tensor pairs = products.index({at::indexing::Slice(), places[0], places[1]});
    // The definition of a factorisation machine, not its fast form.
    return operation.kind == OperationKind::kInteraction ? pairs : at::sum(pairs, 1, /*keepdim=*/true);
  }

  Tensor LossOf(const Operation& operation, const Tensor& logits) const {
    const Tensor rest = at::zeros({logits.size(0), operation.negatives}, at::kDouble);
    const Tensor labels = operation.negatives > 0 ? at::cat({labels_, rest}, 1) : labels_;
    const Tensor each = at::binary_cross_entropy_with_logits(logits, labels, {}, {}, at::Reduction::None);
    return at::mean(operation.negatives > 0 ? at::sum(each, 1) : at::mean(each, 1));
  }

  const Graph& graph_;
  std::vector<Tensor>&dense_, &rows_;
  const Tensor ids_, numerics_, labels_;
  size_t next_dense_ = 0, next_rows_ = 0;
  std::vector<Tensor> values_;
};

std::vector<double> ValuesOf(const Tensor& tensor) {
  const Tensor flat = tensor.contiguous().to(at::kDouble);
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

TorchResult ComputeInTorch(const Graph& graph, const BatchView& batch, const std::vector<std::vector<float>>& dense,
                           const std::vector<std::vector<float>>& rows) {
  std::vector<Tensor> weights, tables, all;
  const std::vector<ParameterSpec> specs = graph.Parameters(false), table_specs = graph.Parameters(true);
  for (size_t i = 0; i < specs.size(); ++i) {
    const bool bias = specs[i].name == "bias";
    Tensor tensor =
        bias ? TensorOf(dense[i], {specs[i].columns}) : TensorOf(dense[i], {specs[i].rows, specs[i].columns});
    weights.push_back(tensor.requires_grad_());
  }
  for (size_t i = 0; i < table_specs.size(); ++i) {
    const int64_t columns = table_specs[i].columns;
    tables.push_back(TensorOf(rows[i], {static_cast<int64_t>(rows[i].size()) / columns, columns}).requires_grad_());
  }
  const Tensor loss = TorchGraph(graph, batch, weights, tables).Loss();
  all.insert(all.end(), weights.begin(), weights.end());
  all.insert(all.end(), tables.begin(), tables.end());
  const std::vector<Tensor> found = torch::autograd::grad({loss}, all);
  TorchResult result;
  result.loss = loss.item<double>();
  for (size_t i = 0; i < all.size(); ++i) {
    (i < weights.size() ? result.dense : result.rows).push_back(ValuesOf(found[i]));
  }
  return result;
}

}  // namespace medley::worker::testing

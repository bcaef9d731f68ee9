#include "worker/predict/network.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "common/base/status.h"
#include "worker/model/vector_layers.h"
#include "worker/predict/embedded_linear.h"
#include "worker/predict/packed_matrix.h"

namespace medley::worker {
namespace {

// A fully connected layer.
class Linear {
 public:
  Linear(const Operation& operation, const Weights& weights)
      : activation_(operation.activation),
        inputs_(operation.parameters[0].rows),
        outputs_(operation.output_width),
        matrix_(outputs_ < kNarrow ? std::span<const float>() : weights.at(operation.name + ".weight"),
                outputs_ < kNarrow ? 0 : inputs_, outputs_),
        bias_(Padded(weights.at(operation.name + ".bias"), matrix_.stride())) {
    if (outputs_ >= kNarrow) return;
    const std::vector<float>& values = weights.at(operation.name + ".weight");
    for (int64_t output = 0; output < outputs_; ++output) {
      for (int64_t input = 0; input < inputs_; ++input) {
        columns_.push_back(values[static_cast<size_t>(input * outputs_ + output)]);
      }
    }
  }

  int64_t stride() const { return matrix_.stride(); }

  void Compute(const float* x, int64_t x_stride, int64_t rows, float* y) const {
    if (columns_.empty()) {
      matrix_.Multiply(x, x_stride, rows, bias_.data(), y);
    } else {
      for (int64_t row = 0; row < rows; ++row) Dots(x + row * x_stride, y + row * stride());
    }
    ActivateValues(activation_, y, rows * stride());
  }

 private:
  // Partial sums, so that the compiler may use vectors.
  void Dots(const float* x, float* y) const {
    constexpr int64_t kLanes = 16;
    std::fill_n(y, stride(), 0.0F);
    for (int64_t output = 0; output < outputs_; ++output) {
      const float* const w = columns_.data() + output * inputs_;
      float sums[kLanes] = {};
      int64_t i = 0;
      for (; i + kLanes <= inputs_; i += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * w[i + lane];
      }
      float sum = bias_[static_cast<size_t>(output)];
      for (; i < inputs_; ++i) sum += x[i] * w[i];
      for (const float part : sums) sum += part;
      y[output] = sum;
    }
  }

  Activation activation_;
  int64_t inputs_;
  int64_t outputs_;
  PackedMatrix matrix_;
  std::vector<float> bias_;
  std::vector<float> columns_;  // of a narrow layer, one behind the other
};

// An embedding whose rows are added, or with a layer behind it for which products are of no use.
class Embedding {
 public:
  Embedding(const Operation& operation, const Reads& reads, const Weights& weights)
      : sum_(operation.sum_fields),
        reads_(reads),
        dim_(operation.parameters[0].columns),
        width_(operation.output_width),
        table_(weights.at(operation.name + ".table")) {}

  int64_t stride() const { return width_; }

  void Compute(const int32_t* ids, const float* numerics, int64_t rows, float* y) const {
    for (int64_t row = 0; row < rows; ++row) {
      float* out = y + row * width_;
      std::fill_n(out, width_, 0.0F);
      for (int64_t field = 0; field < reads_.fields; ++field) {
        const float* const from =
            table_.data() + static_cast<int64_t>(ids[row * reads_.ids_of_sample + reads_.first + field]) * dim_;
        for (int64_t i = 0; i < dim_; ++i) out[i] += from[i];
        if (!sum_) out += dim_;
      }
      if (sum_) out += dim_;
      std::copy_n(numerics + row * reads_.numerics, reads_.numerics, out);
    }
  }

 private:
  const bool sum_;
  const Reads reads_;
  const int64_t dim_;
  const int64_t width_;
  const std::vector<float>& table_;
};

// The numbers of a sample.
class Numbers {
 public:
  explicit Numbers(const Operation& operation) : width_(operation.output_width) {}

  int64_t stride() const { return width_; }

  void Compute(const float* numerics, int64_t rows, float* y) const { std::copy_n(numerics, rows * width_, y); }

 private:
  const int64_t width_;
};

// A layer of vector_layers.h.
class Vectors {
 public:
  explicit Vectors(const Operation& operation) : operation_(operation) {}

  int64_t stride() const { return operation_.output_width; }

  void Compute(std::span<const LayerInput> inputs, int64_t rows, float* y) const {
    VectorLayerForward(operation_, inputs, 0, rows, y);
  }

 private:
  Operation operation_;  // not const: steps are moved
};

// y = x0 * (x W + b) + x.
class CrossLayer {
 public:
  CrossLayer(const Operation& operation, const Weights& weights)
      : width_(operation.output_width),
        matrix_(weights.at(operation.name + ".weight"), width_, width_),
        bias_(Padded(weights.at(operation.name + ".bias"), matrix_.stride())) {}

  int64_t stride() const { return matrix_.stride(); }

  void Compute(std::span<const LayerInput> inputs, int64_t rows, float* y) const {
    const LayerInput &x0 = inputs.front(), &x = inputs.back();
    matrix_.Multiply(x.data, x.stride, rows, bias_.data(), y);
    for (int64_t row = 0; row < rows; ++row, y += stride()) {
      const float* const a = x0.data + row * x0.stride;
      const float* const b = x.data + row * x.stride;
      for (int64_t i = 0; i < width_; ++i) y[i] = a[i] * y[i] + b[i];
    }
  }

 private:
  int64_t width_;
  PackedMatrix matrix_;
  std::vector<float> bias_;
};

using Computation = std::variant<EmbeddedLinear, Embedding, Linear, Numbers, Vectors, CrossLayer>;

// One operation, or an embedding and the layer behind it.
struct Step {
  Computation computation;
  std::vector<int> inputs;  // operations; empty: the features
  int operation = 0;        // whose output it computes
};

// Where the output of an operation lies.
struct Place {
  size_t buffer = 0;
  int64_t stride = 0;
};

}  // namespace

class Network::Rep {
 public:
  explicit Rep(const LoadedModel& loaded)
      : shape_(loaded.model.graph.shape), outputs_(loaded.model.graph.Outputs()), places_(Operations(loaded).size()) {
    const std::vector<Operation>& operations = Operations(loaded);
    last_uses_.resize(operations.size());
    for (const Operation& operation : operations) widths_.push_back(operation.output_width);
    for (int i = 0; i < static_cast<int>(operations.size()); ++i) {
      for (const int input : operations[static_cast<size_t>(i)].inputs) last_uses_[static_cast<size_t>(input)] = i;
    }
    for (int i = 0; i < static_cast<int>(operations.size()); ++i) Add(loaded, i);
    result_ = operations.back().inputs.front();
  }

  void Logits(const Batch& batch, std::vector<float>& logits) {
    MEDLEY_CHECK(batch.shape.fields == shape_.fields && batch.shape.numerics == shape_.numerics,
                 "the samples do not have the features of the model");
    for (int64_t first = 0; first < batch.samples; first += rows_at_once_) {
      const int64_t rows = std::min<int64_t>(rows_at_once_, batch.samples - first);
      Compute(batch.ids.data() + first * shape_.fields, batch.numerics.data() + first * shape_.numerics, rows, logits);
    }
  }

 private:
  static const std::vector<Operation>& Operations(const LoadedModel& loaded) { return loaded.model.graph.operations; }

  // Adds the step of an operation; the layer behind an embedding is computed with it where that is faster.
  void Add(const LoadedModel& loaded, int index) {
    const std::vector<Operation>& operations = Operations(loaded);
    const Operation& operation = operations[static_cast<size_t>(index)];
    switch (operation.kind) {
      case OperationKind::kEmbedding:
        if (!Fuses(operations, index)) Add(Embedding(operation, Reads(operation, shape_), loaded.weights), {}, index);
        break;
      case OperationKind::kFullyConnected:
        if (index > 0 && Fuses(operations, index - 1)) {
          const Operation& embedding = operations[static_cast<size_t>(index) - 1];
          EmbeddedLinear fused(embedding, operation, Reads(embedding, shape_), loaded.weights);
          rows_at_once_ = std::min(rows_at_once_, fused.rows_at_once());
          Add(std::move(fused), {}, index);
        } else {
          Add(Linear(operation, loaded.weights), operation.inputs, index);
        }
        break;
      case OperationKind::kNumerics:
        Add(Numbers(operation), {}, index);
        break;
      case OperationKind::kCross:
        Add(CrossLayer(operation, loaded.weights), operation.inputs, index);
        break;
      case OperationKind::kLoss:
      case OperationKind::kImported:  // reading the model has refused it
        break;
      default:
        Add(Vectors(operation), operation.inputs, index);
    }
  }

  // Whether products of an embedding's rows and the next layer's weights are worth to be kept.
  bool Fuses(const std::vector<Operation>& operations, int index) const {
    const Operation& embedding = operations[static_cast<size_t>(index)];
    const Operation& next = operations[static_cast<size_t>(index) + 1];
    return embedding.kind == OperationKind::kEmbedding && !embedding.sum_fields && embedding.parameters[0].fields > 0 &&
           next.kind == OperationKind::kFullyConnected && next.output_width >= kNarrow &&
           last_uses_[static_cast<size_t>(index)] == index + 1;
  }

  // The output lies in a buffer of which nobody needs the content any more.
  void Add(Computation computation, std::vector<int> inputs, int operation) {
    if (free_.empty()) {
      free_.push_back(buffers_.size());
      buffers_.emplace_back();
    }
    const int64_t stride = std::visit([](const auto& of) { return of.stride(); }, computation);
    places_[static_cast<size_t>(operation)] = {free_.back(), stride};
    free_.pop_back();
    for (const int input : inputs) {
      if (last_uses_[static_cast<size_t>(input)] != operation) continue;
      free_.push_back(places_[static_cast<size_t>(input)].buffer);
    }
    steps_.push_back({std::move(computation), std::move(inputs), operation});
  }

  void Compute(const int32_t* ids, const float* numerics, int64_t rows, std::vector<float>& logits) {
    for (Step& step : steps_) {
      const Place& place = places_[static_cast<size_t>(step.operation)];
      std::vector<float>& to = buffers_[place.buffer];
      to.resize(std::max(to.size(), static_cast<size_t>(rows * place.stride)));
      float* const y = to.data();
      const auto input = [&](size_t k) { return buffers_[places_[static_cast<size_t>(step.inputs[k])].buffer].data(); };
      const auto stride = [&](size_t k) { return places_[static_cast<size_t>(step.inputs[k])].stride; };
      if (auto* fused = std::get_if<EmbeddedLinear>(&step.computation)) {
        fused->Compute(ids, numerics, rows, y);
      } else if (const auto* embedding = std::get_if<Embedding>(&step.computation)) {
        embedding->Compute(ids, numerics, rows, y);
      } else if (const auto* linear = std::get_if<Linear>(&step.computation)) {
        const bool first = step.inputs.empty();
        linear->Compute(first ? numerics : input(0), first ? shape_.numerics : stride(0), rows, y);
      } else if (const auto* numbers = std::get_if<Numbers>(&step.computation)) {
        numbers->Compute(numerics, rows, y);
      } else {
        layer_inputs_.clear();
        for (size_t k = 0; k < step.inputs.size(); ++k) {
          layer_inputs_.push_back({input(k), widths_[static_cast<size_t>(step.inputs[k])], stride(k)});
        }
        if (const auto* cross = std::get_if<CrossLayer>(&step.computation)) {
          cross->Compute(layer_inputs_, rows, y);
        } else {
          std::get<Vectors>(step.computation).Compute(layer_inputs_, rows, y);
        }
      }
    }
    const Place& place = places_[static_cast<size_t>(result_)];
    const float* x = buffers_[place.buffer].data();
    for (int64_t row = 0; row < rows; ++row, x += place.stride) logits.insert(logits.end(), x, x + outputs_);
  }

  const SampleShape shape_;
  const int64_t outputs_;
  int64_t rows_at_once_ = kMostRows;
  std::vector<int> last_uses_;   // by operation: the last one that takes its output
  std::vector<Place> places_;    // by operation
  std::vector<int64_t> widths_;  // by operation: floats per sample
  std::vector<Step> steps_;
  int result_ = 0;  // the operation whose outputs are the logits
  std::vector<std::vector<float>> buffers_;
  std::vector<size_t> free_;  // buffers
  std::vector<LayerInput> layer_inputs_;
};

Network::Network(const LoadedModel& model) : rep_(std::make_unique<Rep>(model)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
void Network::Logits(const Batch& batch, std::vector<float>& logits) { rep_->Logits(batch, logits); }

}  // namespace medley::worker

#include "worker/predict/network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "worker/predict/packed_matrix.h"
#include "worker/predict/product_cache.h"

namespace medley::worker {
namespace {

constexpr int64_t kMostRows = 240;                    // samples that are computed together
constexpr int64_t kCacheFloats = int64_t{1} << 24;    // 64 MiB, for all fields
constexpr int64_t kScratchFloats = int64_t{1} << 23;  // 32 MiB
constexpr int64_t kNarrow = 4;  // layers with fewer outputs are computed as dot products: a panel would be mostly empty

std::vector<float> Padded(const std::vector<float>& values, int64_t size) {
  std::vector<float> padded = values;
  padded.resize(static_cast<size_t>(size));
  return padded;
}

void Activate(Activation activation, float* values, int64_t count) {
  switch (activation) {
    case Activation::kRelu:
      for (int64_t i = 0; i < count; ++i) values[i] = values[i] > 0 ? values[i] : 0;
      break;
    case Activation::kSigmoid:
      for (int64_t i = 0; i < count; ++i) values[i] = 1 / (1 + std::exp(-values[i]));
      break;
    case Activation::kTanh:
      for (int64_t i = 0; i < count; ++i) values[i] = std::tanh(values[i]);
      break;
    case Activation::kNone:
      break;
  }
}

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
    Activate(activation_, y, rows * stride());
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

  const Activation activation_;
  const int64_t inputs_;
  const int64_t outputs_;
  const PackedMatrix matrix_;
  const std::vector<float> bias_;
  std::vector<float> columns_;  // of a narrow layer, one behind the other
};

// An embedding whose rows are concatenated, and the fully connected layer behind it.
class EmbeddedLinear {
 public:
  EmbeddedLinear(const Operation& embedding, const Operation& linear, const SampleShape& shape, const Weights& weights)
      : activation_(linear.activation),
        fields_(shape.fields),
        numerics_(shape.numerics),
        dim_(embedding.parameters[0].columns),
        outputs_(linear.output_width),
        table_(weights.at(embedding.name + ".table")) {
    const std::span<const float> w = weights.at(linear.name + ".weight");
    const auto part = [&](int64_t first, int64_t rows) {
      return w.subspan(static_cast<size_t>(first * outputs_), static_cast<size_t>(rows * outputs_));
    };
    for (int64_t field = 0; field < fields_; ++field) parts_.emplace_back(part(field * dim_, dim_), dim_, outputs_);
    stride_ = parts_.front().stride();
    zero_.resize(static_cast<size_t>(stride_));
    bias_ = Padded(weights.at(linear.name + ".bias"), stride_);
    for (int64_t i = 0; i < numerics_; ++i) {
      const std::span<const float> row = part(fields_ * dim_ + i, 1);
      tail_.insert(tail_.end(), row.begin(), row.end());
      tail_.resize(static_cast<size_t>((i + 1) * stride_));
    }
    const int64_t slots = std::min(embedding.parameters[0].rows, kCacheFloats / (fields_ * stride_));
    for (int64_t field = 0; field < fields_; ++field) caches_.emplace_back(slots, stride_);
    rows_at_once_ = std::clamp<int64_t>(kScratchFloats / (fields_ * stride_), 1, kMostRows);
  }

  int64_t stride() const { return stride_; }
  int64_t rows_at_once() const { return rows_at_once_; }

  // `rows` is at most rows_at_once().
  void Compute(const int32_t* ids, const float* numerics, int64_t rows, float* y) {
    const auto width = static_cast<size_t>(fields_ + numerics_);
    pointers_.resize(static_cast<size_t>(rows) * width);
    scales_.assign(static_cast<size_t>(rows) * width, 1);
    FindProducts(ids, rows);
    for (int64_t row = 0; row < rows; ++row) {
      const size_t first = static_cast<size_t>(row) * width;
      for (int64_t i = 0; i < numerics_; ++i) {
        const size_t at = first + static_cast<size_t>(fields_ + i);
        pointers_[at] = tail_.data() + i * stride_;
        scales_[at] = numerics[row * numerics_ + i];
      }
      WeightedSum(std::span(pointers_).subspan(first, width), std::span(scales_).subspan(first, width), bias_.data(),
                  stride_, y + row * stride_);
    }
    for (const Miss& miss : misses_) caches_[static_cast<size_t>(miss.field)].Keep(miss.id, miss.product);
    Activate(activation_, y, rows * stride_);
  }

 private:
  struct Miss {
    int64_t row = 0;
    int64_t field = 0;
    int32_t id = 0;
    const float* product = nullptr;
  };

  // Sets the pointers of all fields. The products that no cache has are computed into scratch memory, which is kept
  // until the sums are computed.
  void FindProducts(const int32_t* ids, int64_t rows) {
    misses_.clear();
    for (int64_t field = 0; field < fields_; ++field) {
      const ProductCache& cache = caches_[static_cast<size_t>(field)];
      for (int64_t row = 0; row < rows; ++row) {
        const int32_t id = ids[row * fields_ + field];
        const float* const found = cache.Find(id);
        pointers_[At(row, field)] = found;
        if (found == nullptr) misses_.push_back({row, field, id, nullptr});
      }
    }
    if (misses_.empty()) return;
    inputs_.resize(misses_.size() * static_cast<size_t>(dim_));
    products_.resize(misses_.size() * static_cast<size_t>(stride_));
    for (size_t i = 0; i < misses_.size(); ++i) {
      std::copy_n(table_.data() + static_cast<int64_t>(misses_[i].id) * dim_, dim_,
                  inputs_.data() + i * static_cast<size_t>(dim_));
      misses_[i].product = products_.data() + i * static_cast<size_t>(stride_);
      pointers_[At(misses_[i].row, misses_[i].field)] = misses_[i].product;
    }
    for (size_t first = 0; first < misses_.size();) {
      size_t end = first;
      while (end < misses_.size() && misses_[end].field == misses_[first].field) ++end;
      parts_[static_cast<size_t>(misses_[first].field)].Multiply(
          inputs_.data() + first * static_cast<size_t>(dim_), dim_, static_cast<int64_t>(end - first), zero_.data(),
          products_.data() + first * static_cast<size_t>(stride_));
      first = end;
    }
  }

  size_t At(int64_t row, int64_t field) const { return static_cast<size_t>(row * (fields_ + numerics_) + field); }

  const Activation activation_;
  const int64_t fields_;
  const int64_t numerics_;
  const int64_t dim_;
  const int64_t outputs_;
  const std::vector<float>& table_;
  std::vector<PackedMatrix> parts_;  // of the weights, by field
  int64_t stride_ = 0;
  int64_t rows_at_once_ = 1;
  std::vector<float> zero_;
  std::vector<float> bias_;
  std::vector<float> tail_;  // the rows of the weights for the numeric features, stride_ apart
  std::vector<ProductCache> caches_;

  std::vector<const float*> pointers_;
  std::vector<float> scales_;
  std::vector<Miss> misses_;  // by field
  std::vector<float> inputs_;
  std::vector<float> products_;
};

// An embedding whose rows are added, or with a layer behind it for which products are of no use.
class Embedding {
 public:
  Embedding(const Operation& operation, const SampleShape& shape, const Weights& weights)
      : sum_(operation.sum_fields),
        fields_(shape.fields),
        numerics_(shape.numerics),
        dim_(operation.parameters[0].columns),
        width_(operation.output_width),
        table_(weights.at(operation.name + ".table")) {}

  int64_t stride() const { return width_; }

  void Compute(const int32_t* ids, const float* numerics, int64_t rows, float* y) const {
    for (int64_t row = 0; row < rows; ++row) {
      float* out = y + row * width_;
      std::fill_n(out, width_, 0.0F);
      for (int64_t field = 0; field < fields_; ++field) {
        const float* const from = table_.data() + static_cast<int64_t>(ids[row * fields_ + field]) * dim_;
        for (int64_t i = 0; i < dim_; ++i) out[i] += from[i];
        if (!sum_) out += dim_;
      }
      if (sum_) out += dim_;
      std::copy_n(numerics + row * numerics_, numerics_, out);
    }
  }

 private:
  const bool sum_;
  const int64_t fields_;
  const int64_t numerics_;
  const int64_t dim_;
  const int64_t width_;
  const std::vector<float>& table_;
};

}  // namespace

class Network::Rep {
 public:
  explicit Rep(const LoadedModel& loaded) : shape_(loaded.model.graph.shape), outputs_(loaded.model.graph.Outputs()) {
    const std::vector<Operation>& operations = loaded.model.graph.operations;
    layers_.reserve(operations.size());
    size_t next = 0;
    if (operations[0].kind == OperationKind::kEmbedding) {
      const bool fuses = !operations[0].sum_fields && operations[1].kind == OperationKind::kFullyConnected &&
                         operations[1].output_width >= kNarrow && shape_.fields > 0;
      if (fuses) {
        fused_ = std::make_unique<EmbeddedLinear>(operations[0], operations[1], shape_, loaded.weights);
        rows_at_once_ = fused_->rows_at_once();
      } else {
        embedding_ = std::make_unique<Embedding>(operations[0], shape_, loaded.weights);
      }
      next = fuses ? 2 : 1;
    }
    for (; next < operations.size(); ++next) {
      if (operations[next].kind == OperationKind::kFullyConnected)
        layers_.emplace_back(operations[next], loaded.weights);
    }
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
  void Compute(const int32_t* ids, const float* numerics, int64_t rows, std::vector<float>& logits) {
    const float* x = numerics;
    int64_t stride = shape_.numerics;
    size_t into = 0;
    const auto buffer = [&](int64_t width) {
      std::vector<float>& to = buffers_[into];
      into = 1 - into;
      to.resize(std::max(to.size(), static_cast<size_t>(rows * width)));
      stride = width;
      return to.data();
    };
    if (fused_ != nullptr) {
      float* const y = buffer(fused_->stride());
      fused_->Compute(ids, numerics, rows, y);
      x = y;
    } else if (embedding_ != nullptr) {
      float* const y = buffer(embedding_->stride());
      embedding_->Compute(ids, numerics, rows, y);
      x = y;
    }
    for (const Linear& layer : layers_) {
      const int64_t x_stride = stride;
      float* const y = buffer(layer.stride());
      layer.Compute(x, x_stride, rows, y);
      x = y;
    }
    for (int64_t row = 0; row < rows; ++row) logits.insert(logits.end(), x + row * stride, x + row * stride + outputs_);
  }

  const SampleShape shape_;
  const int64_t outputs_;
  int64_t rows_at_once_ = kMostRows;
  std::unique_ptr<EmbeddedLinear> fused_;
  std::unique_ptr<Embedding> embedding_;
  std::vector<Linear> layers_;
  std::vector<float> buffers_[2];  // the input and the output of a layer
};

Network::Network(const LoadedModel& model) : rep_(std::make_unique<Rep>(model)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
void Network::Logits(const Batch& batch, std::vector<float>& logits) { rep_->Logits(batch, logits); }

}  // namespace medley::worker

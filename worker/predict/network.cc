#include "worker/predict/network.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

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

  Activation activation_;
  int64_t inputs_;
  int64_t outputs_;
  PackedMatrix matrix_;
  std::vector<float> bias_;
  std::vector<float> columns_;  // of a narrow layer, one behind the other
};

// What an embedding reads of a sample.
struct Reads {
  Reads(const Operation& embedding, const SampleShape& shape)
      : first(embedding.parameters[0].first_field),
        fields(embedding.parameters[0].fields),
        numerics(embedding.reads_numerics ? shape.numerics : 0),
        ids_of_sample(shape.fields) {}
  int64_t first;  // field
  int64_t fields;
  int64_t numerics;  // that it appends
  int64_t ids_of_sample;
};

// An embedding whose rows are concatenated, and the fully connected layer behind it.
class EmbeddedLinear {
 public:
  EmbeddedLinear(const Operation& embedding, const Operation& linear, const Reads& reads, const Weights& weights)
      : activation_(linear.activation),
        first_(reads.first),
        fields_(reads.fields),
        ids_of_sample_(reads.ids_of_sample),
        numerics_(reads.numerics),
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
        const int32_t id = ids[row * ids_of_sample_ + first_ + field];
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
  const int64_t first_;
  const int64_t fields_;
  const int64_t ids_of_sample_;
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

// Adds or multiplies two equally wide inputs.
class Combination {
 public:
  explicit Combination(const Operation& operation)
      : multiplies_(operation.kind == OperationKind::kMultiply), width_(operation.output_width) {}

  int64_t stride() const { return width_; }

  void Compute(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t rows, float* y) const {
    for (int64_t row = 0; row < rows; ++row, a += a_stride, b += b_stride, y += width_) {
      if (multiplies_) {
        for (int64_t i = 0; i < width_; ++i) y[i] = a[i] * b[i];
      } else {
        for (int64_t i = 0; i < width_; ++i) y[i] = a[i] + b[i];
      }
    }
  }

 private:
  const bool multiplies_;
  const int64_t width_;
};

using Computation = std::variant<EmbeddedLinear, Embedding, Linear, Combination>;

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
      case OperationKind::kAdd:
      case OperationKind::kMultiply:
        Add(Combination(operation), operation.inputs, index);
        break;
      case OperationKind::kLoss:
      case OperationKind::kImported:  // reading the model has refused it
        break;
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
      } else {
        std::get<Combination>(step.computation).Compute(input(0), stride(0), input(1), stride(1), rows, y);
      }
    }
    const Place& place = places_[static_cast<size_t>(result_)];
    const float* x = buffers_[place.buffer].data();
    for (int64_t row = 0; row < rows; ++row, x += place.stride) logits.insert(logits.end(), x, x + outputs_);
  }

  const SampleShape shape_;
  const int64_t outputs_;
  int64_t rows_at_once_ = kMostRows;
  std::vector<int> last_uses_;  // by operation: the last one that takes its output
  std::vector<Place> places_;   // by operation
  std::vector<Step> steps_;
  int result_ = 0;  // the operation whose outputs are the logits
  std::vector<std::vector<float>> buffers_;
  std::vector<size_t> free_;  // buffers
};

Network::Network(const LoadedModel& model) : rep_(std::make_unique<Rep>(model)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
void Network::Logits(const Batch& batch, std::vector<float>& logits) { rep_->Logits(batch, logits); }

}  // namespace medley::worker

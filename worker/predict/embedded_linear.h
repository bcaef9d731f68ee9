// An embedding and the fully connected layer behind it, computed together: the products of the table's rows with their
// part of the weights are kept. Not thread-safe. Used by network.cc, with whose options it is compiled.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/export/read_export.h"
#include "worker/predict/packed_matrix.h"
#include "worker/predict/product_cache.h"

namespace medley::worker {

inline constexpr int64_t kMostRows = 240;                    // samples that are computed together
inline constexpr int64_t kCacheFloats = int64_t{1} << 24;    // 64 MiB, for all fields
inline constexpr int64_t kScratchFloats = int64_t{1} << 23;  // 32 MiB
inline constexpr int64_t kNarrow =
    4;  // layers with fewer outputs are computed as dot products: a panel would be mostly empty

inline std::vector<float> Padded(const std::vector<float>& values, int64_t size) {
  std::vector<float> padded = values;
  padded.resize(static_cast<size_t>(size));
  return padded;
}

inline void ActivateValues(Activation activation, float* values, int64_t count) {
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
    ActivateValues(activation_, y, rows * stride_);
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

}  // namespace medley::worker

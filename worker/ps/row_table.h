// The rows of one embedding table that a shard holds: an open-addressing map from key to a fixed-stride row.
//
// A row is `columns` weights and then `columns` optimizer state, side by side, since an update touches both. Rows are
// made at the first touch by the deterministic initialiser and never removed; a row's number is its order of arrival.
// Not thread-safe: RowStore guards it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker {

class RowTable {
 public:
  RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed);

  const ParameterSpec& spec() const { return spec_; }
  size_t columns() const { return columns_; }
  size_t stride() const { return 2 * columns_; }  // floats a row
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }

  // The row's number; a new row is made. Spans returned by Row are invalid after it.
  uint32_t FindOrCreate(uint64_t key);
  std::span<float> Row(uint32_t row) { return std::span(values_).subspan(row * stride(), stride()); }
  std::span<const float> Row(uint32_t row) const { return std::span(values_).subspan(row * stride(), stride()); }
  uint64_t Key(uint32_t row) const { return keys_[row]; }
  // Step of the last change, undone ones included; 0 for a row as initialised.
  int64_t Changed(uint32_t row) const { return changed_[row]; }
  void SetChanged(uint32_t row, int64_t step) { changed_[row] = step; }

 private:
  void Grow();
  size_t Probe(uint64_t key) const;

  const ParameterSpec spec_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const size_t columns_;
  std::vector<uint32_t> slots_;  // row + 1; 0: empty; a power of two, at most 3/4 full
  std::vector<uint64_t> keys_;
  std::vector<int64_t> changed_;
  std::vector<float> values_;
};

}  // namespace medley::worker

// The rows of one embedding table that a shard holds: an open-addressing map from key to a fixed-stride row.
//
// A row has `columns` weights followed by `columns` values of optimizer state, because an update uses both. The first
// access to a key creates its row, with deterministic initial values. Rows are never removed and are numbered in the
// order of creation.
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
  size_t stride() const { return 2 * columns_; }  // floats per row
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }

  // Returns the number of the key's row and creates the row if necessary. Invalidates spans returned by Row.
  uint32_t FindOrCreate(uint64_t key);
  std::span<float> Row(uint32_t row) { return std::span(values_).subspan(row * stride(), stride()); }
  std::span<const float> Row(uint32_t row) const { return std::span(values_).subspan(row * stride(), stride()); }
  uint64_t Key(uint32_t row) const { return keys_[row]; }
  // The step of the last change, even if it was undone; 0 for a row that never changed.
  int64_t Changed(uint32_t row) const { return changed_[row]; }
  void SetChanged(uint32_t row, int64_t step) { changed_[row] = step; }

 private:
  void Grow();
  size_t Probe(uint64_t key) const;

  const ParameterSpec spec_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const size_t columns_;
  std::vector<uint32_t> buckets_;  // the hash table: row + 1, 0: empty; size is a power of two, at most 3/4 full
  std::vector<uint64_t> keys_;
  std::vector<int64_t> changed_;
  std::vector<float> values_;
};

}  // namespace medley::worker

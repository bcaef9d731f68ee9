// The rows of one embedding table that a shard holds: a hash map from key to a fixed-stride row.
//
// A row has `columns` weights, then its optimizer state (RowFloats), because an update uses both. The first access
// to a key creates its row, with deterministic initial values. Rows are never removed or moved and are numbered in the
// order of creation.
// No call touches more memory when the table has more rows, also when it grows: rows live in blocks, and the hash map
// is a linear hash (Litwin 1980), which splits one bucket for each new key instead of rebuilding itself.
// Not thread-safe: RowStore guards it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/ps/block_vector.h"

namespace medley::worker {

class RowTable {
 public:
  RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed);
  RowTable(RowTable&&) = default;

  const ParameterSpec& spec() const { return spec_; }
  size_t columns() const { return columns_; }
  size_t stride() const { return stride_; }  // floats per row
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }

  // Returns the number of the key's row and creates the row if necessary.
  uint32_t FindOrCreate(uint64_t key);
  std::span<float> Row(uint32_t row) { return {RowStart(row), stride()}; }
  std::span<const float> Row(uint32_t row) const { return {RowStart(row), stride()}; }
  uint64_t Key(uint32_t row) const { return entries_[row].key; }
  // The step of the last change, even if it was undone; 0 for a row that never changed.
  int64_t Changed(uint32_t row) const { return entries_[row].changed; }
  void SetChanged(uint32_t row, int64_t step) { entries_[row].changed = step; }
  // A number for the caller's use during one update; 0 at first. The caller sets it back to 0.
  uint32_t& Mark(uint32_t row) { return entries_[row].mark; }

 private:
  struct Entry {
    uint64_t key = 0;
    int64_t changed = 0;
    uint32_t next = 0;  // the next row of the bucket + 1; 0: none
    uint32_t mark = 0;
  };
  size_t Bucket(uint64_t key) const;
  void AddBucket();
  float* RowStart(uint32_t row) const {
    return blocks_[row / rows_per_block_].get() + (row % rows_per_block_) * stride();
  }

  const ParameterSpec spec_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const size_t columns_;
  const size_t stride_;
  const size_t rows_per_block_;
  BlockVector<Entry> entries_;     // by row
  BlockVector<uint32_t> buckets_;  // the first row of each + 1; 0: none
  std::vector<std::unique_ptr<float[]>> blocks_;
};

}  // namespace medley::worker

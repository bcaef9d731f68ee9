// The values that an update of one table replaced, to undo it. Keeps its memory from update to update, so that an
// update of a usual size allocates none. Not thread-safe: RowStore guards it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace medley::worker {

class ReplacedRows {
 public:
  // `stride`: floats of a row.
  explicit ReplacedRows(size_t stride) : stride_(stride) {}

  size_t size() const { return rows_.size(); }
  uint32_t row(size_t i) const { return rows_[i]; }
  std::span<const float> values(size_t i) const { return {values_.get() + i * stride_, stride_}; }

  // Makes room for `rows` more. Call it once after Clear and before Add.
  void Reserve(size_t rows) {
    if (rows <= capacity_) return;
    capacity_ = std::max(rows, capacity_ + capacity_ / 2);
    values_ = std::make_unique_for_overwrite<float[]>(capacity_ * stride_);
    rows_.reserve(capacity_);
  }
  void Add(uint32_t row, std::span<const float> values) {
    std::copy_n(values.data(), stride_, values_.get() + rows_.size() * stride_);
    rows_.push_back(row);
  }
  void Clear() { rows_.clear(); }
  // Clears, and frees the memory.
  void Free() {
    rows_ = {};
    values_.reset();
    capacity_ = 0;
  }

 private:
  const size_t stride_;
  std::vector<uint32_t> rows_;
  std::unique_ptr<float[]> values_;
  size_t capacity_ = 0;  // rows
};

}  // namespace medley::worker

// Products of rows of an embedding with the weights of the layer behind it, for one field. The newest of the rows that
// share a slot is kept. Not thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace medley::worker {

class ProductCache {
 public:
  // `slots` is rounded down to a power of two. `width` floats each.
  ProductCache(int64_t slots, int64_t width)
      : width_(width),
        ids_(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(slots, 1))), kNone),
        values_(new float[ids_.size() * static_cast<size_t>(width)]) {}

  // Null when the cache does not have the product of this row.
  const float* Find(int32_t id) const {
    const size_t slot = SlotOf(id);
    return ids_[slot] == id ? At(slot) : nullptr;
  }
  void Keep(int32_t id, const float* product) {
    const size_t slot = SlotOf(id);
    ids_[slot] = id;
    std::copy_n(product, width_, At(slot));
  }

 private:
  static constexpr int32_t kNone = -1;
  size_t SlotOf(int32_t id) const { return static_cast<uint32_t>(id) & (ids_.size() - 1); }
  float* At(size_t slot) const { return values_.get() + slot * static_cast<size_t>(width_); }

  int64_t width_;
  std::vector<int32_t> ids_;
  std::unique_ptr<float[]> values_;  // not initialised, so that memory is used only for rows that occur
};

}  // namespace medley::worker

// Sums the row gradients of several pushes by key, in the order in which they are added. Keeps its memory from step to
// step. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "worker/params/update_kernels.h"

namespace medley::worker {

class GradientSums {
 public:
  // Begins a table with rows of `columns` floats.
  void Clear(size_t columns);
  // `gradients`: keys x columns. A key may occur several times.
  void Add(std::span<const uint64_t> keys, std::span<const float> gradients);

  // The keys in the order of their first occurrence, and the sums in the order of the keys. Valid until the next call.
  std::span<const uint64_t> keys() const { return keys_; }
  std::span<const float> values() const { return values_; }

 private:
  void Rehash(size_t keys);
  uint32_t& Slot(uint64_t key);

  const AddKernel add_ = AddKernelOf(BestInstructions());
  size_t columns_ = 0;
  std::vector<uint64_t> keys_;
  std::vector<float> values_;
  std::vector<uint32_t> slots_;  // a hash table: index in keys_ + 1, or 0; at most half of them are used
};

}  // namespace medley::worker

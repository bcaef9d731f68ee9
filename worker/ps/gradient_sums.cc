#include "worker/ps/gradient_sums.h"

#include <algorithm>
#include <bit>

#include "common/base/rng.h"

namespace medley::worker {

void GradientSums::Clear(size_t columns) {
  columns_ = columns;
  keys_.clear();
  values_.clear();
  std::ranges::fill(slots_, 0);
}

uint32_t& GradientSums::Slot(uint64_t key) {
  size_t at = base::Mix64(key) & (slots_.size() - 1);
  while (slots_[at] != 0 && keys_[slots_[at] - 1] != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void GradientSums::Rehash(size_t keys) {
  if (2 * keys <= slots_.size()) return;
  slots_.assign(std::bit_ceil(std::max<size_t>(64, 2 * keys)), 0);
  for (size_t i = 0; i < keys_.size(); ++i) Slot(keys_[i]) = static_cast<uint32_t>(i + 1);
}

void GradientSums::Add(std::span<const uint64_t> keys, std::span<const float> gradients) {
  Rehash(keys_.size() + keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    const float* const gradient = gradients.data() + k * columns_;
    uint32_t& slot = Slot(keys[k]);
    if (slot != 0) {
      add_(values_.data() + (slot - 1) * columns_, gradient, columns_);
      continue;
    }
    keys_.push_back(keys[k]);
    values_.insert(values_.end(), gradient, gradient + columns_);
    slot = static_cast<uint32_t>(keys_.size());
  }
}

}  // namespace medley::worker

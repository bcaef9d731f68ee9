#include "worker/ps/row_snapshot.h"

#include <algorithm>

namespace medley::worker {

void SavedRows::Add(uint32_t row, std::span<const float> values) {
  auto& page = pages_[row / kPageRows];
  if (page == nullptr) page = std::make_unique<Page>();
  if (saved_ % kBlockRows == 0) blocks_.push_back(std::make_unique_for_overwrite<float[]>(kBlockRows * stride_));
  std::copy(values.begin(), values.end(), blocks_.back().get() + (saved_ % kBlockRows) * stride_);
  (*page)[row % kPageRows] = ++saved_;
}

std::span<const float> SavedRows::Row(uint32_t row) const {
  const uint32_t place = Place(row) - 1;
  return {blocks_[place / kBlockRows].get() + (place % kBlockRows) * stride_, stride_};
}

}  // namespace medley::worker

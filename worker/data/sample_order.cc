#include "worker/data/sample_order.h"

#include <algorithm>

#include "common/base/rng.h"

namespace medley::worker {
namespace {

int64_t BlockCount(int64_t rows, const BlockOrder& blocks) {
  return blocks.block > 0 && blocks.window > 0 ? (rows - 1) / blocks.block + 1 : 0;
}

// Small keys give no two windows, and no window and the blocks, the same permutation.
uint64_t KeyOf(uint64_t seed, uint64_t part) { return base::Mix64(base::Mix64(seed) ^ base::Mix64(part + 1)); }

}  // namespace

SampleOrder::SampleOrder(int64_t rows, uint64_t seed, const BlockOrder& blocks, int64_t data_epoch)
    : rows_(rows),
      seed_(seed),
      blocks_(blocks),
      data_epoch_(data_epoch),
      count_(BlockCount(rows, blocks)),
      missing_(count_ > 0 ? count_ * blocks.block - rows : 0),
      windows_(count_ > 0 ? (count_ - 1) / blocks.window + 1 : 1),
      order_(windows_ > 1 ? Permutation(count_, KeyOf(seed, 0), data_epoch) : Permutation(rows, seed, data_epoch)),
      last_slot_(windows_ > 1 ? order_.PositionOf(count_ - 1) : 0) {}

int64_t SampleOrder::operator()(int64_t position) const {
  if (windows_ == 1) return order_(position);
  const auto [window, index] = PlaceOf(position);
  const int64_t at = Start(window) + index;
  const int64_t slot = SlotAt(at);
  return order_(slot) * blocks_.block + at - StartOfSlot(slot);
}

SampleOrder::Place SampleOrder::PlaceOf(int64_t position) const {
  const int64_t window = WindowAt(SlotAt(position));
  const int64_t start = Start(window);
  const Permutation shuffled(SamplesIn(window), KeyOf(seed_, static_cast<uint64_t>(window) + 1), data_epoch_);
  return {window, shuffled(position - start)};
}

SampleOrder::Block SampleOrder::BlockIn(int64_t window, int64_t i) const {
  const int64_t slot = FirstSlot(window) + i;
  const int64_t start = StartOfSlot(slot);
  return {.number = order_(slot), .first = start - Start(window), .samples = StartOfSlot(slot + 1) - start};
}

int64_t SampleOrder::FirstSlot(int64_t window) const {
  return window * (count_ / windows_) + std::min(window, count_ % windows_);
}

int64_t SampleOrder::StartOfSlot(int64_t slot) const {
  return slot * blocks_.block - (slot > last_slot_ ? missing_ : 0);
}

int64_t SampleOrder::SlotAt(int64_t position) const {
  const int64_t slot = position / blocks_.block;
  return slot < last_slot_ || position < StartOfSlot(last_slot_ + 1) ? std::min(slot, last_slot_)
                                                                     : (position + missing_) / blocks_.block;
}

int64_t SampleOrder::WindowAt(int64_t slot) const {
  const int64_t fewest = count_ / windows_, longer = count_ % windows_;  // the first `longer` windows have one more
  const int64_t in_longer = longer * (fewest + 1);
  return slot < in_longer ? slot / (fewest + 1) : longer + (slot - in_longer) / fewest;
}

}  // namespace medley::worker

#include "worker/aten/row_slots.h"

#include <algorithm>
#include <bit>

namespace medley::worker::aten {

RowSlots::RowSlots(int64_t rows, int64_t slots)
    : slot_of_(static_cast<size_t>(rows), -1), slots_(static_cast<size_t>(slots)) {}

void RowSlots::Use(Slot& slot, int64_t step) {
  slot.pinned = std::max(slot.pinned, step);
  slot.fetched = fetches_;
  slot.uses = std::min(kMostUses, slot.uses + 1);
}

int64_t RowSlots::FindVictim(int64_t undo_limit) {
  // Each round halves the uses of a slot.
  const size_t most = slots_.size() * (std::bit_width(static_cast<unsigned>(kMostUses)) + 1U);
  for (size_t looked = 0; !all_pinned_ && looked < most; ++looked) {
    hand_ = (hand_ + 1) % slots_.size();
    Slot& slot = slots_[hand_];
    if (slot.pinned > undo_limit || slot.fetched == fetches_) continue;
    if (slot.key == kNoKey || slot.uses == 0) return static_cast<int64_t>(hand_);
    slot.uses /= 2;
  }
  all_pinned_ = true;
  slots_.emplace_back();
  return capacity() - 1;
}

RowSlots::Fetched RowSlots::Fetch(std::span<const uint64_t> keys, int64_t step, int64_t undo_limit) {
  ++fetches_;
  all_pinned_ = false;
  Fetched fetched;
  fetched.slots.resize(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    const int32_t at = slot_of_[keys[k]];
    fetched.slots[k] = at;
    if (at < 0) {
      fetched.missing.push_back(k);
    } else {
      Use(slots_[static_cast<size_t>(at)], step);
    }
  }
  hits_ += static_cast<int64_t>(keys.size() - fetched.missing.size());
  misses_ += static_cast<int64_t>(fetched.missing.size());
  for (const size_t k : fetched.missing) {
    const int64_t at = FindVictim(undo_limit);
    Slot& slot = slots_[static_cast<size_t>(at)];
    if (slot.key != kNoKey) slot_of_[slot.key] = -1;
    if (slot.changed) fetched.evicted.push_back({slot.key, at});
    slot = {.key = keys[k]};
    Use(slot, step);
    slot_of_[keys[k]] = static_cast<int32_t>(at);
    fetched.slots[k] = at;
  }
  return fetched;
}

void RowSlots::SetChanged(std::span<const uint64_t> keys) {
  for (const uint64_t key : keys) slots_[static_cast<size_t>(slot_of_[key])].changed = true;
}

std::vector<RowSlots::Evicted> RowSlots::TakeChanged() {
  std::vector<Evicted> changed;
  for (size_t s = 0; s < slots_.size(); ++s) {
    if (!slots_[s].changed) continue;
    slots_[s].changed = false;
    changed.push_back({slots_[s].key, static_cast<int64_t>(s)});
  }
  return changed;
}

void RowSlots::Unpin() {
  for (Slot& slot : slots_) slot.pinned = 0;
}

void RowSlots::Clear() {
  std::ranges::fill(slot_of_, -1);
  std::ranges::fill(slots_, Slot());
}

}  // namespace medley::worker::aten

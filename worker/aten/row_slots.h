// Which rows of a table are on the device, and where, while the table is in the host's memory: the slots of a cache.
// Only the bookkeeping: who has the rows copies them.
//
// A row leaves its slot for another one when it was not used lately (a clock whose hand halves the uses that it finds).
// The rows of open steps, and of those that can be undone, keep their slots: they are pinned. So a row without a slot
// is in no open step, and its values on the host are the newest. Slots are added where all are pinned.
//
// Not thread-safe. ResidentTables owns one for each table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace medley::worker::aten {

class RowSlots {
 public:
  // `rows` of the table; `slots` >= 1.
  RowSlots(int64_t rows, int64_t slots);

  struct Evicted {
    uint64_t key = 0;
    int64_t slot = 0;  // where its values are
  };
  struct Fetched {
    std::vector<int64_t> slots;    // by key
    std::vector<size_t> missing;   // indices of the keys whose slots have other values yet
    std::vector<Evicted> evicted;  // of changed rows, which must be copied to the host before slots are filled
  };
  // Gives each of the distinct keys a slot. `step` > 0 pins them until that step can no longer be undone.
  Fetched Fetch(std::span<const uint64_t> keys, int64_t step, int64_t undo_limit);
  // The rows have other values than on the host.
  void SetChanged(std::span<const uint64_t> keys);
  // All changed rows. From then on they count as unchanged.
  std::vector<Evicted> TakeChanged();
  // No step is open, and none can be undone.
  void Unpin();
  // No row has a slot.
  void Clear();

  int64_t capacity() const { return static_cast<int64_t>(slots_.size()); }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }

 private:
  static constexpr uint64_t kNoKey = ~uint64_t{0};
  static constexpr int kMostUses = 15;
  struct Slot {
    uint64_t key = kNoKey;
    int64_t pinned = 0;   // the last step that pinned it
    int64_t fetched = 0;  // the last Fetch that asked for it
    int uses = 0;
    bool changed = false;
  };
  // A slot for another row; adds one if none is free.
  int64_t FindVictim(int64_t undo_limit);
  void Use(Slot& slot, int64_t step);

  std::vector<int32_t> slot_of_;  // by key; -1: none
  std::vector<Slot> slots_;
  size_t hand_ = 0;
  int64_t fetches_ = 0;
  bool all_pinned_ = false;  // found by this Fetch
  int64_t hits_ = 0, misses_ = 0;
};

}  // namespace medley::worker::aten

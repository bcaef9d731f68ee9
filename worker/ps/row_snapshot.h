// The rows of a RowStore at one moment, which are read while updates go on: an update copies a row before it changes
// it, unless the row has been read already.
//
// So taking a snapshot costs nothing, and while it exists each row is copied at most once. No call takes longer when
// the table has more rows. Not thread-safe: RowStore guards it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/ps/row_tiers.h"

namespace medley::worker {

// Copies of some rows of one table, found by row number.
class SavedRows {
 public:
  SavedRows(uint32_t rows, size_t stride) : stride_(stride), pages_((size_t{rows} + kPageRows - 1) / kPageRows) {}

  bool Contains(uint32_t row) const { return Place(row) != 0; }
  // Call once for each row.
  void Add(uint32_t row, std::span<const float> values);
  // Call only if Contains.
  std::span<const float> Row(uint32_t row) const;

 private:
  static constexpr size_t kPageRows = 4096;
  static constexpr size_t kBlockRows = 1024;
  using Page = std::array<uint32_t, kPageRows>;  // the row's number in blocks_ + 1; 0: not saved

  uint32_t Place(uint32_t row) const {
    const auto& page = pages_[row / kPageRows];
    return page == nullptr ? 0 : (*page)[row % kPageRows];
  }

  const size_t stride_;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<std::unique_ptr<float[]>> blocks_;
  uint32_t saved_ = 0;
};

class RowSnapshot {
 public:
  int64_t step() const { return step_; }
  int64_t state_samples() const { return state_samples_; }

 private:
  friend class RowStore;
  struct Table {
    uint32_t rows = 0;  // rows created later are not part of the snapshot
    uint32_t read = 0;  // rows before this one need no copy
    SavedRows saved;
    // With tiers: rows whose memory has become that of another key since, and their keys.
    std::vector<bool> left;
    absl::flat_hash_set<uint64_t> left_keys;
    absl::flat_hash_map<uint32_t, uint64_t> key_of;  // of those that were not read yet
  };

  int64_t step_ = 0;
  int64_t state_samples_ = 0;
  std::vector<Table> tables_;
  std::shared_ptr<const RowTiers::Moment> cold_;  // null: there were none
};

}  // namespace medley::worker

// The rows of one embedding table that a shard holds.
//
// A row has `columns` weights, then its optimizer state (RowFloats), because an update uses both, beside its key.
// Where the optimizer's lifetime of rows counts sightings, its use comes behind them. Rows are never moved and are
// numbered in the order of creation. A row that is of no use any more can become that of another key (CreateIn). A key
// without a row has the deterministic initial values, so only an update or an import needs to create it.
// No call touches more memory when the table has more rows, also when it grows: see RowIndex and RowSlabs.
// Not thread-safe: RowStore guards it.
#pragma once

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/params/row_lifetime.h"
#include "worker/ps/row_index.h"
#include "worker/ps/row_slabs.h"

namespace medley::worker {

class RowTable {
 public:
  static constexpr uint32_t kNoRow = RowIndex::kNone;
  static constexpr uint32_t kMaxRows = kNoRow;

  RowTable(ParameterSpec spec, const Optimizer& optimizer, uint64_t seed);
  RowTable(RowTable&&) = default;

  const ParameterSpec& spec() const { return spec_; }
  size_t columns() const { return columns_; }
  size_t stride() const { return stride_; }  // floats per row
  uint32_t size() const { return slabs_.size(); }

  // What a row is given at first. kAny: the caller writes all of its floats.
  enum class FirstValues { kInitial, kAny };
  // Creates the row of a key that has none, with its initial values and no sightings. At most kMaxRows.
  uint32_t Create(uint64_t key, FirstValues values = FirstValues::kInitial);
  // The same in the place of an older row for which `is_free`, if one is found among the next few. They are looked at
  // in turn. Rows that a ForEach under way has found may become those of other keys.
  uint32_t CreateIn(uint64_t key, absl::FunctionRef<bool(uint32_t row)> is_free);
  // Gives the row's memory to a key without a row, as CreateIn does.
  void Replace(uint32_t row, uint64_t key, FirstValues values = FirstValues::kInitial);
  // Gives the row its initial values and no sightings.
  void Reset(uint32_t row);
  // The row of a key or kNoRow.
  uint32_t Find(uint64_t key) const { return index_.Find(key, RowIndex::Hash(key), KeyOf{slabs_}); }
  // Writes the initial weights of a row.
  void Initial(uint64_t key, std::span<float> weights) const;

  std::span<float> Row(uint32_t row) { return {Values(row), stride_}; }
  std::span<const float> Row(uint32_t row) const { return {Values(row), stride_}; }
  uint64_t Key(uint32_t row) const { return HeadOf(slabs_, row).key; }
  // The step of the last change, even if it was undone; 0 for a row that never changed.
  int64_t Changed(uint32_t row) const { return HeadOf(slabs_, row).changed; }
  void SetChanged(uint32_t row, int64_t step) {
    Head& head = HeadOf(slabs_, row);
    head.changed = step & kMostStep;
    head.marks.changed = true;
  }

  // What tiers of rows (row_tiers.h) know of a row. Pulls change it too.
  struct Marks {
    uint8_t use : 4 = 0;        // how often it was used lately
    bool has_copy : 1 = false;  // there is a cold row of its key
    bool changed : 1 = true;    // since it was cold
    bool fresh : 1 = false;     // became hot lately
  };
  Marks& MarksOf(uint32_t row) const { return HeadOf(slabs_, row).marks; }
  // Fetch what Replace and a copy of the row will read: first the row, and then, with its key, its place in the index.
  void PrefetchRow(uint32_t row) const {
    constexpr size_t kLine = 64;
    const std::byte* const bytes = slabs_.Row(row);
    for (size_t at = 0; at < slabs_.row_bytes() + kLine; at += kLine) __builtin_prefetch(bytes + at, 1);
  }
  void PrefetchPlace(uint32_t row) const { index_.Prefetch(RowIndex::Hash(Key(row))); }
  // Bytes of memory for a row and its part of the index.
  size_t BytesPerRow() const { return slabs_.row_bytes() + kIndexBytes; }

  // Only if the optimizer's lifetime counts.
  RowUse Use(uint32_t row) const { return UseOf(Row(row).last<kUseFloats>()); }
  void SetUse(uint32_t row, RowUse use) { PutUse(use, Row(row).last<kUseFloats>()); }

  // Calls visit(i, number of the row of keys[i] or kNoRow) for every i in order, and meanwhile fetches the first
  // `floats` values of the next rows, so that the memory of several is under way at a time. `visit` may create rows.
  template <typename Visit>
  void ForEach(std::span<const uint64_t> keys, size_t floats, Visit visit) const;

 private:
  static constexpr int64_t kMostStep = (int64_t{1} << 55) - 1;
  static constexpr size_t kIndexBytes = 12;  // when it is least full
  struct Head {
    uint64_t key;
    int64_t changed : 56;
    Marks marks;
  };
  static_assert(sizeof(Head) == 16);
  struct KeyOf {
    const RowSlabs& slabs;
    uint64_t operator()(uint32_t row) const { return HeadOf(slabs, row).key; }
    void Prefetch(uint32_t row) const { __builtin_prefetch(slabs.Row(row)); }
  };
  void Begin(uint32_t row, uint64_t key, FirstValues values);
  static Head& HeadOf(const RowSlabs& slabs, uint32_t row) { return *reinterpret_cast<Head*>(slabs.Row(row)); }
  float* Values(uint32_t row) const { return reinterpret_cast<float*>(slabs_.Row(row) + sizeof(Head)); }

  const ParameterSpec spec_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const size_t columns_;
  const size_t stride_;
  RowIndex index_;
  RowSlabs slabs_;
  uint32_t hand_ = 0;  // the row that CreateIn looked at last
};

template <typename Visit>
void RowTable::ForEach(std::span<const uint64_t> keys, size_t floats, Visit visit) const {
  constexpr size_t kAhead = 16;  // keys between the steps of a look-up: bucket, row, visit
  constexpr size_t kRing = 2 * kAhead;
  constexpr size_t kLine = 64;
  struct Pending {
    uint64_t hash;
    uint32_t row;
  };
  std::array<Pending, kRing> ring;
  const size_t lines = (sizeof(Head) + floats * sizeof(float) + kLine - 1) / kLine;
  const size_t ends = keys.size() + kRing;
  for (size_t i = 0; i < ends; ++i) {
    if (i >= kRing) {
      const size_t at = i - kRing;
      const Pending& pending = ring[at % kRing];
      // A row that was created meanwhile is found too: rows do not move, and a guess that is wrong is looked up.
      const bool known = pending.row != kNoRow && Key(pending.row) == keys[at];
      visit(at, known ? pending.row : index_.Find(keys[at], pending.hash, KeyOf{slabs_}));
    }
    if (i < keys.size()) {
      ring[i % kRing].hash = RowIndex::Hash(keys[i]);
      index_.Prefetch(ring[i % kRing].hash);
    }
    if (i < kAhead || i - kAhead >= keys.size()) continue;
    Pending& pending = ring[(i - kAhead) % kRing];
    pending.row = index_.Guess(pending.hash);
    if (pending.row == kNoRow) continue;
    const std::byte* row = slabs_.Row(pending.row);
    for (size_t line = 0; line <= lines; ++line) __builtin_prefetch(row + line * kLine);
  }
}

}  // namespace medley::worker

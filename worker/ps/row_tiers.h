// The cold rows of a RowStore: which rows leave memory, and where they are found again.
//
// A table has memory for a number of rows that follows from the budget. Where a row needs memory and none is left,
// another one becomes cold. Most hot rows are established. A part is for fresh ones, which became hot lately: the
// oldest of them becomes cold, or is established if it was used again. An established row becomes cold only where there
// is another one in its place: a hand goes around them, halves the counts of their uses, and stops at one that was not
// used lately (the clock of Corbato 1968, with counts). A cold row becomes hot when its key is looked up; it is
// established at once where it was used more lately than the oldest tenth of the established rows (after LIRS: Jiang,
// Zhang 2002).
// So rows that are used once push out no row that is used often.
// The copy of a hot row on the disk stays, and does not count; so a key that was cold once has a copy from then on,
// maybe an old one. No value depends on which rows are hot.
//
// When the disk is full no more rows become cold, so memory grows, which the log says; that is tried again. A row that
// cannot be read is lost: status() says so for good, and Options::failed is called.
// Not thread-safe: RowStore guards it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/rng.h"
#include "worker/cold/cold_rows.h"
#include "worker/ps/row_table.h"

namespace medley::worker {

struct RowTierOptions {
  int64_t memory_bytes = 0;                           // for hot rows and what finds cold ones; 0: all rows are hot
  std::filesystem::path folder;                       // of a local disk
  int64_t most_disk_bytes = 0;                        // 0: what the disk has
  std::function<void(const absl::Status&)> failed{};  // called at most once, maybe with the store's lock: do not wait
  const base::Clock* clock = nullptr;                 // null: the time of waiting is not measured
};

struct RowTierCounts {
  int64_t hot = 0;     // rows
  int64_t cold = 0;    // rows that are not hot
  int64_t uses = 0;    // rows that pulls have found, since the start
  int64_t loads = 0;   // rows that became hot again
  int64_t ahead = 0;   // of these, the ones that did before a pull needed them
  int64_t cooled = 0;  // rows that became cold; those that had not changed were not written
  int64_t memory_bytes = 0;
  int64_t disk_bytes = 0;
  double wait_seconds = 0;  // in which pulls and updates waited for the disk
};

class RowTiers {
 public:
  // A cold row: the step of its last change, then its floats.
  using Bytes = std::span<const std::byte>;
  using TableKey = std::pair<uint32_t, uint64_t>;

  // Null: the options ask for no tiers, or all rows of the tables fit into the budget. Errors: those of ColdRows::Open.
  static absl::StatusOr<std::unique_ptr<RowTiers>> Open(const RowTierOptions& options,
                                                        std::span<const RowTable> tables);

  // OK, or why rows are lost.
  const absl::Status& status() const { return status_; }

  // Says that a row is used.
  void Use(const RowTable& t, uint32_t row) {
    RowTable::Marks& marks = t.MarksOf(row);
    if (marks.use < kMostUse) ++marks.use;
  }
  // Says that a pull has found so many rows.
  void CountUses(int64_t rows) { counts_.uses += rows; }
  // Now, for CountWait. Any thread.
  base::SteadyTime Now() const { return options_.clock == nullptr ? base::SteadyTime{} : options_.clock->Steady(); }
  // Says that something waited for the disk between two moments.
  void CountWait(base::SteadyTime from, base::SteadyTime to) { counts_.wait_seconds += base::ToSeconds(to - from); }
  // Says that a step is applied. Tries again to write where the disk was full.
  void NoteStep(int64_t step);
  // The row whose memory a new row of the table takes, or kNoRow: it gets memory of its own. Rows that were changed at
  // step `pinned_from` or later stay.
  uint32_t FindVictim(size_t table, const RowTable& t, int64_t pinned_from);
  // Says that the table has a new row, which is not made from a cold one.
  void NoteNew(size_t table, const RowTable& t, uint32_t row);
  // Makes a cold row of it. The caller gives its memory to another key.
  void Cool(size_t table, const RowTable& t, uint32_t row);
  // The same for a row that nobody needs.
  void Drop(const RowTable& t, uint32_t row) { hot_copies_ -= t.MarksOf(row).has_copy ? 1 : 0; }
  // Whether the key has a copy; then `bytes` are this copy.
  bool Find(size_t table, uint64_t key, std::vector<std::byte>& bytes);
  // Gives a new row the values of its copy. `ahead`: before a pull needs it.
  void Warm(size_t table, RowTable& t, uint32_t row, Bytes bytes, bool ahead);
  // Whether its copy is not on the disk yet.
  bool Waits(size_t table, uint64_t key) const {
    return waiting_at_.contains(TableKey(static_cast<uint32_t>(table), key));
  }
  // Whether any row of these tables can be cold.
  bool MayHave() const { return cold_keys_ > 0; }

  // A thread that reads copies without the store's lock takes note of Cools() before, with the lock, and uses what it
  // has read only of keys for which MayHaveCooled is false since.
  int64_t Cools() const { return counts_.cooled; }
  bool MayHaveCooled(int64_t since, size_t table, uint64_t key) const {
    return cooled_[StampOf(static_cast<uint32_t>(table), key)] > since;
  }
  // Says that reading failed. Only damage means that rows are lost.
  void NoteRead(const absl::Status& read) {
    if (!read.ok()) Fail(read);
  }
  const ColdRows& cold() const { return *cold_; }

  // Rows that wait to be written, for a view of all cold rows at one moment: the view, then these in place of its own.
  struct Moment {
    std::unique_ptr<ColdRows::View> view;
    absl::flat_hash_map<TableKey, std::vector<std::byte>> waiting;
    int64_t newest = 0;  // no cold row was changed after this step
  };
  Moment TakeMoment();
  // Keys of the table whose rows are hot now and newer than their copies in a view of now: those of them that become
  // cold while the caller has the result. Rows that change more than a step after `step` are left out. Read it with the
  // store's lock.
  std::shared_ptr<const absl::flat_hash_set<uint64_t>> WatchOldCopies(size_t table, int64_t step);
  // Writes what waits to be written. Errors: those of ColdRows::Put.
  absl::Status Flush();
  // What a scan of a view ended with: damage means that rows are lost.
  void NoteScan(const absl::Status& ended) {
    if (ended.code() == absl::StatusCode::kDataLoss) Fail(ended);
  }

  int64_t ColdRowCount() const { return cold_keys_ - hot_copies_; }
  RowTierCounts counts() const;
  static int64_t ChangedAt(Bytes bytes);
  static void FloatsOf(Bytes bytes, std::span<float> floats);

 private:
  static constexpr int kMostUse = 7;
  static constexpr size_t kStamps = size_t{1} << 15;
  static size_t StampOf(uint32_t table, uint64_t key) { return base::Mix64(key + (uint64_t{table} << 40)) % kStamps; }
  struct Waiting {
    uint32_t table;
    uint64_t key;
    size_t at, size;  // in text_
    bool has_copy;    // an earlier one, on the disk
  };
  struct Watch {
    size_t table;
    int64_t last_step;
    std::weak_ptr<absl::flat_hash_set<uint64_t>> keys;
  };
  // What is known of the hot rows of a table.
  struct HotRows {
    uint32_t capacity = 0;        // rows at most
    uint32_t fresh_capacity = 0;  // of these
    uint32_t hand = 0;
    std::deque<uint32_t> fresh;  // the oldest first
    uint32_t looked_at = 0;
    double oldest = 0;  // steps since the last change of the oldest tenth of the established rows
  };

  RowTiers(const RowTierOptions& options, std::unique_ptr<ColdRows> cold) : options_(options), cold_(std::move(cold)) {}
  absl::Status Write();
  void Fail(const absl::Status& status);
  void MakeFresh(HotRows& hot, const RowTable& t, uint32_t row);
  bool IsWorthMore(HotRows& hot, const RowTable& t, double distance) const;
  uint32_t FreshVictim(HotRows& hot, const RowTable& t, int64_t pinned_from);
  uint32_t EstablishedVictim(HotRows& hot, const RowTable& t, int64_t pinned_from) const;
  Bytes WaitingOf(const Waiting& row) const { return Bytes(text_).subspan(row.at, row.size); }

  const RowTierOptions options_;
  const std::unique_ptr<ColdRows> cold_;
  absl::Status status_;
  int64_t step_ = 0;
  std::vector<HotRows> hot_;      // by table
  std::vector<Waiting> waiting_;  // rows that are written together
  std::vector<std::byte> text_;
  absl::flat_hash_map<TableKey, size_t> waiting_at_;  // in waiting_
  // When a row last became cold, in the order of Cools(); several share an entry.
  std::vector<int64_t> cooled_ = std::vector<int64_t>(kStamps);
  std::vector<Watch> watches_;
  bool full_ = false;  // the last write failed
  int64_t retries_ = 0;
  int64_t cold_keys_ = 0, hot_copies_ = 0;  // keys with a copy, and those of them that are hot
  int64_t newest_ = 0;
  RowTierCounts counts_;
};

}  // namespace medley::worker

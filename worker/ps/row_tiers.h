// The cold rows of a RowStore: which rows leave memory, and where they are found again.
//
// A table has memory for a number of rows that follows from the budget. Each use of a row is counted in the row. Where
// a row needs memory and there is none left, a hand goes around the rows, halves their counts, and stops at one that
// was not used lately (the clock of Corbato 1968, with counts): that row becomes cold. A cold row becomes hot when its
// key is looked up. Its copy on the disk stays, and does not count while the row is hot; so a key that was cold once
// has a copy, maybe an old one, from then on. No value depends on which rows are hot.
//
// When the disk is full no more rows become cold, so memory grows, which the log says; that is tried again. A row that
// cannot be read is lost: status() says so for good, and Options::failed is called.
// Not thread-safe: RowStore guards it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "worker/cold/cold_rows.h"
#include "worker/ps/row_table.h"

namespace medley::worker {

struct RowTierOptions {
  int64_t memory_bytes = 0;                           // for hot rows and what finds cold ones; 0: all rows are hot
  std::filesystem::path folder;                       // of a local disk
  int64_t most_disk_bytes = 0;                        // 0: what the disk has
  std::function<void(const absl::Status&)> failed{};  // called at most once, maybe with the store's lock: do not wait
};

struct RowTierCounts {
  int64_t hot = 0;    // rows
  int64_t cold = 0;   // rows that are not hot
  int64_t uses = 0;   // rows that pulls have found, since the start
  int64_t loads = 0;  // rows that became hot again
  int64_t ahead = 0;  // of these, the ones that did before a pull needed them
  int64_t disk_bytes = 0;
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
  // The row whose memory a new row of the table takes, or kNoRow: it gets memory of its own. Rows that were changed at
  // step `pinned_from` or later stay.
  uint32_t FindVictim(size_t table, const RowTable& t, int64_t pinned_from);
  // Makes a cold row of it. The caller gives its memory to another key.
  void Cool(size_t table, const RowTable& t, uint32_t row);
  // The same for a row that nobody needs.
  void Drop(const RowTable& t, uint32_t row) { hot_copies_ -= t.MarksOf(row).has_copy ? 1 : 0; }
  // Whether the key has a copy; then `bytes` are this copy.
  bool Find(size_t table, uint64_t key, std::vector<std::byte>& bytes);
  // The same for several keys; found(i, bytes).
  void FindAll(size_t table, std::span<const uint64_t> keys, absl::FunctionRef<void(size_t i, Bytes bytes)> found);
  // Gives a new row the values of its copy. `ahead`: before a pull needs it.
  void Warm(RowTable& t, uint32_t row, Bytes bytes, bool ahead);
  // Whether its copy is not on the disk yet.
  bool Waits(size_t table, uint64_t key) const {
    return waiting_at_.contains(TableKey(static_cast<uint32_t>(table), key));
  }
  // Whether any row of these tables can be cold.
  bool MayHave() const { return cold_keys_ > 0; }

  // A thread that reads copies without the store's lock calls BeginReading before, with the lock, and uses what it has
  // read, again with the lock, only of keys for which WasCooled is false.
  void BeginReading() { cooled_.emplace_back(); }
  bool WasCooled(size_t table, uint64_t key) const;
  void EndReading() { cooled_.pop_back(); }
  const ColdRows& cold() const { return *cold_; }

  // Rows that wait to be written, for a view of all cold rows at one moment: the view, then these in place of its own.
  struct Moment {
    std::unique_ptr<ColdRows::View> view;
    absl::flat_hash_map<TableKey, std::vector<std::byte>> waiting;
    int64_t newest = 0;  // no cold row was changed after this step
  };
  Moment TakeMoment();
  // Tries again to write where the disk was full.
  void Retry();
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
  struct Waiting {
    uint32_t table;
    uint64_t key;
    size_t at, size;  // in text_
  };

  RowTiers(const RowTierOptions& options, std::unique_ptr<ColdRows> cold) : options_(options), cold_(std::move(cold)) {}
  void Write();
  void Fail(const absl::Status& status);
  Bytes WaitingOf(const Waiting& row) const { return Bytes(text_).subspan(row.at, row.size); }

  const RowTierOptions options_;
  const std::unique_ptr<ColdRows> cold_;
  absl::Status status_;
  std::vector<uint32_t> capacity_;  // rows that are hot at most, by table
  std::vector<uint32_t> hands_;
  std::vector<Waiting> waiting_;  // rows that are written together
  std::vector<std::byte> text_;
  absl::flat_hash_map<TableKey, size_t> waiting_at_;   // in waiting_
  std::vector<absl::flat_hash_set<TableKey>> cooled_;  // while another thread reads
  bool full_ = false;                                  // the last write failed
  int64_t retries_ = 0;
  int64_t cold_keys_ = 0, hot_copies_ = 0;  // keys with a copy, and those of them that are hot
  int64_t newest_ = 0;
  RowTierCounts counts_;
};

}  // namespace medley::worker

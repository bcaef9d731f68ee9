// The rows of one shard with their optimizer state, the step that they have applied, and the values to undo that step.
//
// Outlives generations: while the number of shards stays the same, the next generation's ShardGeneration uses the same
// store. Thread-safe; one mutex is enough, because an update and a pull of one step never overlap. Waits are bounded.
//
// Where Optimizer::lifetime counts sightings, a key with too few of them for a row is kept in a second table, of keys
// and uses only, and is exported and imported as a row of kUseFloats floats. A key that has lost its row by now reads
// as its initial values, though the row still exists until another key takes its place.
//
// With tiers, rows that were not used lately are on the local disk (row_tiers.h). No value depends on where a row is.
//
// Invariant: the rows are exactly those after update AppliedStep(); StateSamples() counts the samples in them.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/pipeline/wait_limit.h"
#include "worker/ps/fetch_ahead.h"
#include "worker/ps/gradient_sums.h"
#include "worker/ps/replaced_rows.h"
#include "worker/ps/row_snapshot.h"
#include "worker/ps/row_table.h"
#include "worker/ps/row_tiers.h"

namespace medley::worker {

// The row gradients of one table from one trainer. Does not own them.
struct GradientView {
  int table = 0;
  std::span<const uint64_t> keys;
  std::span<const float> gradients;  // keys x columns
};

// Some rows of a table, for transfer to another shard or into a checkpoint.
struct RowPiece {
  int table = 0;
  std::vector<uint64_t> keys;
  std::vector<float> values;  // for each key: weights, then optimizer state
  int64_t at_step = 0;
  int64_t state_samples = 0;
};

class RowStore {
 public:
  // With some rows on the disk, where the options ask for it and the tables are too large. Errors: those of
  // RowTiers::Open.
  static absl::StatusOr<std::shared_ptr<RowStore>> Make(std::vector<ParameterSpec> tables, const Optimizer& optimizer,
                                                        uint64_t seed, const RowTierOptions& tiers);
  // With all rows in memory.
  RowStore(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed);
  ~RowStore();

  // Floats that Read writes for `keys` of a table. NotFound for an unknown table.
  absl::StatusOr<size_t> ReadFloats(int table, size_t keys) const;
  // Writes the current weights of `keys` to `out`, which has ReadFloats; those of a key without a row are its initial
  // ones, and no row is created. Cold rows are read without the store's lock, so updates may run between; the rows of
  // one step are those of a caller without whom there is no update. Errors: NotFound for an unknown table,
  // InvalidArgument for a row beyond it; those of cold rows, after which every call fails.
  absl::Status Read(int table, std::span<const uint64_t> keys, std::span<float> out);
  // The same for those that changed after update `since`, also if that was undone: appends their places among the keys,
  // ascending, and their weights. Only if KnowsChanges().
  absl::Status ReadChanged(int table, std::span<const uint64_t> keys, int64_t since, std::vector<uint32_t>& places,
                           std::vector<float>& rows) const;
  // False where a row may be on the disk, or be lost without an update.
  bool KnowsChanges() const { return !HasTiers() && !optimizer_.lifetime.Counts(); }
  // A pull of these keys will come: their cold rows are read in the background. Does nothing where all are in memory.
  void Expect(int table, std::vector<uint64_t> keys);
  bool HasTiers() const { return fetch_ahead_ != nullptr; }
  // Waits until the keys of all calls of Expect are read.
  void AwaitExpected();
  // Waits until AppliedStep() >= step. Errors: Cancelled, DeadlineExceeded.
  absl::Status WaitApplied(int64_t step, const WaitLimit& limit);
  // Takes the state from step - 1 to `step`: sums the gradients in the order given (trainer rank), then applies them.
  // Errors, which leave the state unchanged: FailedPrecondition when it is not at step - 1; InvalidArgument.
  absl::Status Apply(int64_t step, std::span<const GradientView> gradients, int64_t samples);

  int64_t AppliedStep() const;
  int64_t UndoLimit() const;  // oldest step that UndoTo can reach
  // Whether the next updates can be undone; at first they can. False frees what the last one replaced.
  void SetKeepsUndo(bool keeps);
  int64_t StateSamples() const;
  // FailedPrecondition beyond UndoLimit.
  absl::Status UndoTo(int64_t step);

  // Passes to `sink` the rows that changed after `since_step` and for which `wanted` is true, in pieces of at most 1
  // MiB. Updates may run between pieces; each piece has the step at which it was read. An empty piece comes last, so
  // that the receiver learns at_step even without rows.
  absl::Status Export(int64_t since_step, absl::FunctionRef<bool(int table, uint64_t key)> wanted,
                      absl::FunctionRef<absl::Status(const RowPiece&)> sink) const;
  // Takes a snapshot of all rows. Updates and pulls go on while ExportSnapshot reads it. Ends an earlier snapshot. The
  // caller ends this one, because updates copy rows for it until then.
  std::shared_ptr<RowSnapshot> TakeSnapshot();
  // Passes the rows of the snapshot to `sink` in the order of Export, in pieces of at most 1 MiB. Errors: Aborted when
  // the snapshot was ended; those of `sink`.
  absl::Status ExportSnapshot(RowSnapshot& snapshot, absl::FunctionRef<absl::Status(const RowPiece&)> sink);
  // Frees the rows that were copied for the snapshot. Any thread, also during ExportSnapshot.
  void EndSnapshot(RowSnapshot& snapshot);
  // Overwrites rows, which have IsRowWidth floats each and their use, or keys that have no row yet, with only a use
  // (kUseFloats floats). Call SetApplied once after the last Import; it sets the step,
  // and no undo is possible.
  absl::Status Import(int table, std::span<const uint64_t> keys, std::span<const float> values);
  void SetApplied(int64_t step, int64_t samples);
  // That exist, also those that are of no use any more.
  int64_t Rows() const;
  // Writes all cold rows to the disk, for tests.
  absl::Status FlushTiers();
  // nullopt: there are no tiers.
  std::optional<RowTierCounts> TierCounts() const;

 private:
  static constexpr int64_t kNothingPinned = std::numeric_limits<int64_t>::max();

  const RowTable* Find(int table) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RowTable* Find(int table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Check(const GradientView& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Called before a row changes.
  void SaveForSnapshot(size_t table, uint32_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyTable(size_t table, std::span<const GradientView> gradients, int64_t step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same where sightings are counted.
  void ApplyCounted(size_t table, const GradientView& sums, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts a sighting of a key without a row.
  RowUse Sight(size_t table, uint64_t key, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Creates a row, in the place of another that no undo, export or snapshot needs.
  uint32_t CreateRow(size_t table, uint64_t key, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void KeepForUndo(size_t table, uint32_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the row says anything in `step`.
  bool IsKnown(std::span<const float> row, int64_t step) const;
  // Whether an export since `since_step` has a row that changed at step `changed`.
  bool IsExported(size_t table, std::span<const float> row, int64_t changed, int64_t since_step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropUndo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CopyWeights(const RowTable& t, uint64_t key, uint32_t row, std::span<float> to) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Row tiers. Memory for the row of a key that has none, not even a cold one, or is made hot; another row may become
  // cold for it.
  uint32_t Place(size_t table, uint64_t key, RowTable::FirstValues values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A new row of a key that has none.
  uint32_t NewRow(size_t table, uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the key's cold row hot. kNoRow: it has none, or tiers_->status() is an error.
  uint32_t Locate(size_t table, uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t MakeHot(size_t table, uint64_t key, std::span<const std::byte> bytes, bool ahead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Read, for the keys at `places`, which are not hot.
  absl::Status ReadCold(size_t table, std::span<const uint64_t> keys, std::span<const size_t> places,
                        std::span<float> out);
  void Load(int table, std::span<const uint64_t> keys);
  // Called before a row's memory becomes that of another key.
  void LeaveSnapshot(size_t table, uint32_t row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WasHot(const RowSnapshot& snapshot, size_t table, uint64_t key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ExportCold(size_t table, int64_t since_step, absl::FunctionRef<bool(int table, uint64_t key)> wanted,
                          absl::FunctionRef<absl::Status(const RowPiece&)> sink) const;
  absl::Status ExportColdOf(const RowSnapshot& snapshot, size_t table,
                            absl::FunctionRef<absl::Status(const RowPiece&)> sink);

  const Optimizer optimizer_;
  mutable base::Mutex mutex_;
  base::CondVar applied_;
  std::vector<RowTable> tables_ ABSL_GUARDED_BY(mutex_);  // with admission, then as many of keys without rows
  size_t row_tables_ = 0;                                 // constant after construction
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  bool keeps_undo_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t undo_limit_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t undo_samples_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<ReplacedRows> undo_ ABSL_GUARDED_BY(mutex_);  // by the last update; one a table
  GradientSums sums_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RowSnapshot> snapshot_ ABSL_GUARDED_BY(mutex_);
  int64_t pinned_from_ ABSL_GUARDED_BY(mutex_) = kNothingPinned;  // rows that changed since stay hot, for an undo
  std::unique_ptr<RowTiers> tiers_;          // constant after Make; what it is made of is guarded by mutex_
  std::unique_ptr<FetchAhead> fetch_ahead_;  // the last: its thread uses the others
};

}  // namespace medley::worker

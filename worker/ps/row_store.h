// What a shard knows: its rows with their optimizer state, the step they stand at, and how to undo that step.
//
// Outlives generations: when the shard map does not change, the next generation's ShardGeneration works on the same store.
// Thread-safe (one mutex: an update and a pull of one step never overlap anyway). Waits are bounded.
//
// Invariant: the rows are exactly those after update AppliedStep(); StateSamples() counts the samples in them.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/pipeline/wait_limit.h"
#include "worker/ps/row_table.h"

namespace medley::worker {

// Gradient rows of one table from one trainer. Does not own.
struct GradientView {
  int table = 0;
  std::span<const uint64_t> keys;
  std::span<const float> gradients;  // keys x columns
};

// A piece of a table on the move.
struct RowPiece {
  int table = 0;
  std::vector<uint64_t> keys;
  std::vector<float> values;  // per key: weights, then optimizer state
  int64_t at_step = 0;
  int64_t state_samples = 0;
};

class RowStore {
 public:
  RowStore(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed);

  // Appends the weights of `keys` to `out` as they are. Errors: NotFound for an unknown table.
  absl::Status Read(int table, std::span<const uint64_t> keys, std::vector<float>& out);
  // Waits until AppliedStep() >= step. Errors: Cancelled, DeadlineExceeded.
  absl::Status WaitApplied(int64_t step, const WaitLimit& limit);
  // Takes the state from step-1 to `step`: gradients are added in the order given (trainer rank), then applied.
  // Errors: FailedPrecondition when the state is not at step-1; InvalidArgument leaves it unchanged.
  absl::Status Apply(int64_t step, std::span<const GradientView> gradients, int64_t samples);

  int64_t AppliedStep() const;
  int64_t UndoLimit() const;  // oldest step that UndoTo reaches
  int64_t StateSamples() const;
  // FailedPrecondition beyond UndoLimit.
  absl::Status UndoTo(int64_t step);

  // Rows for which `wanted(table, key)`, changed after `since_step`, in pieces of at most 1 MiB. The state may move on
  // between pieces: a piece says at which step it was read. Also one empty piece at the end, so at_step is known.
  absl::Status Export(int64_t since_step, absl::FunctionRef<bool(int table, uint64_t key)> wanted,
                      absl::FunctionRef<absl::Status(const RowPiece&)> sink) const;
  // Overwrites rows; the step is set once by SetApplied when all are there, without undo.
  absl::Status Import(int table, std::span<const uint64_t> keys, std::span<const float> values);
  void SetApplied(int64_t step, int64_t samples);
  int64_t Rows() const;

 private:
  struct Touched {
    size_t table = 0;
    uint32_t row = 0;
  };
  RowTable* Find(int table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Check(const GradientView& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyTable(size_t table, std::span<const GradientView> gradients, int64_t step)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Optimizer optimizer_;
  mutable base::Mutex mutex_;
  base::CondVar applied_;
  std::vector<RowTable> tables_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t undo_limit_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t undo_samples_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Touched> undo_rows_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> undo_values_ ABSL_GUARDED_BY(mutex_);  // in the order of undo_rows_
};

}  // namespace medley::worker

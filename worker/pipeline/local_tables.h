// Embedding tables in this process, for a stage with one replica and without parameter servers.
//
// The constructor computes all rows from the seed. Keeps the values that the last updates replaced, to undo them and to
// answer pulls of earlier versions. Thread-safe: a pull waits until the step before it has been applied.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker {

class LocalTables final : public WholeTables {
 public:
  // `kept_updates` >= 0: how many updates can be undone.
  LocalTables(std::vector<ParameterSpec> tables, const Optimizer& optimizer, uint64_t seed, int kept_updates = 1);

  // The rows after update step - 1, also when later ones have been applied. OutOfRange when these values are not kept.
  absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                    const WaitLimit& limit) override;
  absl::Status Push(int64_t step, std::span<const TableKeys> tables, std::span<const std::span<const float>> gradients,
                    int64_t samples, const WaitLimit& limit) override;

  int64_t AppliedStep() const override;
  int64_t UndoLimit() const override;
  absl::Status UndoTo(int64_t step) override;
  std::span<float> Weights(int operation) override;
  std::span<float> State(int operation) override;
  void SetAppliedStep(int64_t step) override;

 private:
  // The values that one update replaced.
  struct Replaced {
    std::vector<uint64_t> keys;  // ascending
    std::vector<float> weights;
    std::vector<float> state;
  };
  struct Table {
    ParameterSpec spec;
    size_t state_columns = 0;  // floats of state a row
    std::vector<float> weights;
    std::vector<float> state;
    std::deque<Replaced> replaced;  // by the updates from undo_limit_ + 1 to step_
  };
  Table* Find(int operation);
  static void Save(const Table& table, std::span<const uint64_t> keys, Replaced& replaced);
  // The row `key` of a table after update `version`.
  const float* RowAt(const Table& table, uint64_t key, int64_t version) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Optimizer optimizer_;
  const int kept_updates_;
  mutable base::Mutex mutex_;
  base::CondVar applied_;
  std::vector<Table> tables_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t undo_limit_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace medley::worker

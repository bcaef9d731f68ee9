// Whole embedding tables in this process, for a stage with one replica and without parameter servers: in the host's
// memory (LocalTables), or in that of the device that computes with them (worker/aten/resident_tables.h).
//
// As SparseParameters: thread-safe for one pulling and one pushing thread. The other functions are called while no step
// runs.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/program/table_place.h"
#include "worker/params/optimizer.h"
#include "worker/pipeline/block_compute.h"
#include "worker/pipeline/sparse_parameters.h"

namespace medley::worker {

class WholeTables : public SparseParameters {
 public:
  virtual int64_t AppliedStep() const = 0;
  virtual int64_t UndoLimit() const = 0;  // oldest step that UndoTo can reach
  // FailedPrecondition beyond UndoLimit.
  virtual absl::Status UndoTo(int64_t step) = 0;

  // All of a table, for checkpoints and transfers. Row-major, spec.Size() weights and StateFloats() times as much
  // state: that of a row together. Who writes to them calls SetAppliedStep next. Valid until the next step.
  virtual std::span<float> Weights(int operation) = 0;
  virtual std::span<float> State(int operation) = 0;
  // The error of a Weights, State or SetAppliedStep; the next pull or push returns it too.
  virtual absl::Status Failure() const { return absl::OkStatus(); }
  // Called after the values were written from outside: they now contain `step`, and no undo is possible.
  virtual void SetAppliedStep(int64_t step) = 0;
};

// Where a block on a device has the tables of its operations, and what was copied for it since it was made.
struct TableCounts {
  model::TablePlace place = model::TablePlace::kUnspecified;  // it has none, or computes on no device
  std::string instead;                  // why the place is not that of the plan, as a sentence; empty: it is
  int64_t used_rows = 0;                // distinct rows that steps asked for
  int64_t found_rows = 0;               // of these, those that were on the device before
  int64_t bytes_in = 0, bytes_out = 0;  // of rows, with their optimizer state or their gradients
};

// A block that can keep the tables of its operations where it computes, on a device that keeps whole tables.
class TableKeeper {
 public:
  virtual ~TableKeeper() = default;
  // From then on SetRows gets no rows, and RowGradients gives none. Null: the block has no memory for them, or the plan
  // has them on the host (BlockSettings::tables). Call it once. Errors: those of the device.
  virtual absl::StatusOr<std::shared_ptr<WholeTables>> MakeTables(const Optimizer& optimizer, uint64_t seed,
                                                                  int kept_updates) = 0;
  // Before SetRows: the keys of its rows, ascending.
  virtual void SetKeys(int slot, int table, std::span<const uint64_t> keys) = 0;
  // Any thread.
  virtual TableCounts Counts() const = 0;
};

// Null: the block takes its rows from the host.
TableKeeper* KeeperOf(BlockCompute& block);

// Gives a block the rows of its tables for a step, or their keys where it has the tables. They begin at `first` of both
// lists; returns the place after the last.
size_t GiveRows(BlockCompute& block, int slot, std::span<const TableKeys> keys,
                std::span<const std::vector<float>> rows, size_t first);

}  // namespace medley::worker

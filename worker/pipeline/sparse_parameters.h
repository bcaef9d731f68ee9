// Access to the rows of embedding tables, in this process (LocalTables) or on parameter servers (PsClient).
//
// Thread-safe for one pulling and one pushing thread. Steps are synchronous
// (proto/medley/job/v1/parameter_server.proto): a pull for step s returns the rows after update s-1, so it waits until
// every push of s-1 is applied.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// The distinct rows of one table that a step touches.
struct TableKeys {
  int operation = 0;           // index of the operation that owns the table
  int columns = 0;             // floats per row
  std::vector<uint64_t> keys;  // sorted, distinct
};

// What PullAhead has filled some rows with.
struct RowsAhead {
  // By owner of rows: its rows contain all changes up to this step; -1: they were not pulled.
  std::vector<int64_t> at;
};

class SparseParameters {
 public:
  virtual ~SparseParameters() = default;
  // Fills rows[i] (resized to keys x columns, row-major) for each of `tables`.
  virtual absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                            const WaitLimit& limit) = 0;
  // Fills `rows` as Pull does, with values that may be those of the step before: the pull does not wait. PullChanged
  // for the same step, tables and rows makes them those of Pull; until then nobody may use them. An owner that cannot
  // tell later which rows have changed gives none now. Errors: those of Pull.
  virtual absl::StatusOr<RowsAhead> PullAhead(int64_t /*step*/, std::span<const TableKeys> /*tables*/,
                                              std::vector<std::vector<float>>& /*rows*/, const WaitLimit& /*limit*/) {
    return RowsAhead{};
  }
  // Waits as Pull does, and fetches only rows that have changed since PullAhead, or were not pulled by it.
  virtual absl::Status PullChanged(int64_t step, std::span<const TableKeys> tables, const RowsAhead& /*ahead*/,
                                   std::vector<std::vector<float>>& rows, const WaitLimit& limit) {
    return Pull(step, tables, rows, limit);
  }
  // Sends the gradients of the rows in the order of the keys, summed over this replica's samples. Every replica pushes
  // in every step, even without keys. `samples` is the size of the global batch. Returns when the owner has received
  // the gradients; they may be applied later.
  virtual absl::Status Push(int64_t step, std::span<const TableKeys> tables,
                            std::span<const std::span<const float>> gradients, int64_t samples,
                            const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

// The rows of embedding tables, wherever they live: in this process (params::LocalTable) or on
// parameter servers.
//
// Thread-safe for one puller and one pusher thread. Semantics are synchronous
// (proto/medley/job/v1/parameter_server.proto): rows pulled for step s are those after update s-1,
// so a pull waits until every push of s-1 is applied.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// The distinct rows of one table that a step touches.
struct TableKeys {
  int operation = 0;           // the table's operation index
  int columns = 0;             // floats a row
  std::vector<uint64_t> keys;  // sorted, distinct
};

class SparseParameters {
 public:
  virtual ~SparseParameters() = default;
  // Fills rows[i] (resized to keys x columns, row-major) for each of `tables`.
  virtual absl::Status Pull(int64_t step, std::span<const TableKeys> tables, std::vector<std::vector<float>>& rows,
                            const WaitLimit& limit) = 0;
  // Gradient rows in the order of the keys, summed over this replica's samples. Every replica
  // pushes every step, even nothing. `samples`: size of the global batch. Returns when the owner
  // has them (not when they are applied).
  virtual absl::Status Push(int64_t step, std::span<const TableKeys> tables,
                            std::span<const std::span<const float>> gradients, int64_t samples,
                            const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

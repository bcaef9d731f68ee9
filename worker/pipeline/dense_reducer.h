// Sum of the dense gradients over the replicas of a stage.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// Called by one thread, in the same order on every replica.
class DenseReducer {
 public:
  virtual ~DenseReducer() = default;
  // In place; on return every replica holds bitwise the same sums.
  virtual absl::Status SumAll(int64_t step, std::span<float> values, const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

// Sums the dense gradients over the replicas of a stage.
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
  // Replaces `values` with the sums over all replicas. Every replica gets the same bits.
  virtual absl::Status SumAll(int64_t step, std::span<float> values, const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

// Sums the dense gradients of a block over its replicas.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "common/program/program.h"
#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// What a reduction is of, when it is not of one block.
inline constexpr int kOfAllBlocks = -1;

// One thread for each server of the program's groups (Group::served) calls it, and one for all other reductions, each
// in the same order on every replica.
class DenseReducer {
 public:
  virtual ~DenseReducer() = default;
  // Replaces `values` with the sums over the members of `group`. Every member gets the same bits. `block`: whose
  // gradients they are, or kOfAllBlocks.
  virtual absl::Status SumAll(int64_t step, int block, const program::Group& group, std::span<float> values,
                              const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

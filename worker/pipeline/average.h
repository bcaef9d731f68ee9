// The average of the parameters of replicas that differ. Pure, but for the parameters.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <span>
#include <vector>

#include "worker/pipeline/block_compute.h"

namespace medley::worker {

// Sets the block's newest parameters and their optimizer state to the mean over `replicas`, and keeps them as agreed.
// `sum` replaces values by their sums over all replicas: all weights, then all state. `buffer`: memory for them.
absl::Status AverageReplicas(BlockCompute& block, int replicas, OptimizerKind kind, std::vector<float>& buffer,
                             absl::FunctionRef<absl::Status(std::span<float>)> sum);

}  // namespace medley::worker

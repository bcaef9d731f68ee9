// Adds the gradients of a parameter that several operations hold (tied weights): program::Kind::kShare. Pure, but for
// the gradients.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>

#include <span>
#include <string>

#include "worker/pipeline/block_compute.h"

namespace medley::worker {

// A block of this device that holds the parameter. Its gradient is equal on all replicas of the block, so the first
// replica counts.
struct SharedHolder {
  BlockCompute* block = nullptr;
  bool counts = false;
};

// Sets the gradient of the parameter in all holders, of which a block may have several, to the sum over all of them.
// `sum`: replaces the values by their sums over all devices with holders; every device gets the same bits, so copies
// stay equal. Errors: Internal for a holder without the parameter; those of `sum`.
absl::Status SumShared(const std::string& name, std::span<const SharedHolder> holders,
                       absl::FunctionRef<absl::Status(std::span<float>)> sum);

}  // namespace medley::worker

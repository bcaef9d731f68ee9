// The lists of one device as one sequence: the order in which a single thread starts their instructions. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/program/program.h"

namespace medley::worker {

struct Sequence {
  // Instructions of the compute list in its order; before each the messages that it is the first to need, after each
  // what it is the last to complete: messages, pushes, reductions. LoadBatch, PullRows and Report are not in it: the
  // prefetcher does the first two, the return of a step is the last.
  std::vector<int> instructions;
  std::vector<int> blocks;  // on this device, ascending
  int layout = -1;          // of the blocks; in it this device is
  int replica = -1;
};

// Errors: Unimplemented for what this executor cannot run, naming it: asynchronous programs, sums of gradients,
// averages, blocks of several layouts on one device, blocks with several inputs or outputs.
absl::StatusOr<Sequence> SequenceOf(const program::Program& program, int device);

}  // namespace medley::worker

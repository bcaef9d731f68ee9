// Measures how fast a device computes while it takes no part in training: it runs the passes of a step, alone.
//
// A device that stands by is probed (docs/adr/0026-slow-members-stand-by.md). The passes have the shapes of its last
// generation, so that their time can be compared with the seconds of computation of its steps then, of which only the
// update is missing.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/base/clock.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

struct ProbedBlock {
  BlockCompute* compute = nullptr;
  size_t seat = 0;         // of the device's share of a batch
  int global_samples = 0;  // StepShape.global_samples
};

// The computation of one device. Everything that it points to is borrowed.
struct ProbedWork {
  std::vector<ProbedBlock> blocks;  // in the program's order
  std::vector<SeatTable> tables;    // of the blocks, in their order
  BatchShare share;
  int micro_batches = 1;
  const Dataset* data = nullptr;
  base::Clock* clock = nullptr;
};

// Seconds of the forward and backward passes of a step of `count` samples of the whole batch: the mean of as many as
// fit into 50 ms, at least one and at most 256, after one that does not count. It is short because a trainer computes a
// few milliseconds at a time too: a busy machine lets whoever computes for long wait for longer. For the same reason
// there is a `pause` between two passes, of at most 100 ms: a process with a CPU quota that waits for others in each
// step is rarely held up by it. A pass begins when the pause should end, so a process that is stopped meanwhile is
// slow. After a second nothing more is measured.
//
// The passes use the first samples of the data, rows of zeros, and zeros in place of other devices' values. They
// exchange nothing and change no parameter; gradients of the blocks are overwritten. No step may be open. Errors: those
// of the assembler and of the blocks.
absl::StatusOr<double> ProbePasses(const ProbedWork& work, int count, base::nanoseconds pause);

}  // namespace medley::worker

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
  const base::Clock* clock = nullptr;
};

// Seconds of the forward and backward passes of a step of `count` samples of the whole batch: the mean of as many as
// fit into 50 ms, at least one and at most 256, after one that does not count. It is short because a trainer computes a
// few milliseconds at a time too: a busy machine lets whoever computes for long wait for longer.
//
// The passes use the first samples of the data, rows of zeros, and zeros in place of other devices' values. They
// exchange nothing and change no parameter; gradients of the blocks are overwritten. No step may be open. Errors: those
// of the assembler and of the blocks.
absl::StatusOr<double> ProbePasses(const ProbedWork& work, int count);

}  // namespace medley::worker

// What a step is to a trainer: the samples that it is given, and what comes out. Plain values.
#pragma once

#include <cstdint>

namespace medley::worker {

// One global batch: samples [first, first + count) of the permutation of `data_epoch` (StepLease of
// proto/medley/job/v1/coordinator.proto).
struct StepLease {
  int64_t step = 0;
  int64_t data_epoch = 0;
  int64_t first = 0;
  int count = 0;
  bool agrees = true;  // where replicas differ: they average their parameters after this step
  bool operator==(const StepLease&) const = default;
};

struct StepResult {
  int64_t step = 0;
  double loss_sum = 0;  // over this device's samples; only of the block with the loss
  int64_t loss_samples = 0;
  double compute_seconds = 0;
  double comm_seconds = 0;  // waiting for activations, gradients, rows, reduction
  double data_seconds = 0;  // waiting for the step's samples; in neither of the others
};

}  // namespace medley::worker

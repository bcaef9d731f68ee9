// What a block keeps of a step that has begun and not ended. Plain values of BlockModel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/data/batch.h"
#include "worker/model/aligned_floats.h"

namespace medley::worker {

// The inputs and outputs of one micro-batch, kept from its forward to its backward pass.
struct MicroBatchState {
  int slot = 0;
  int64_t first_sample = 0;  // within the step's whole batch
  BatchView features;
  std::vector<const float*> inputs;              // of the block
  std::vector<AlignedFloats> outputs;            // one per operation; of the loss: the gradient of its input
  std::vector<AlignedFloats> kept;               // one per operation: what its backward pass needs beside the outputs
  std::vector<std::span<const float>> returned;  // of the block
  std::vector<float> logits;                     // returned, of a loss with drawn rows
};

// The rows of a table that a step uses.
struct TableRows {
  AlignedFloats rows;
  AlignedFloats gradients;
  size_t floats = 0;
};

// What a step that has begun and not ended needs.
struct OpenStep {
  int64_t step = 0;
  int64_t version = 0;  // of the dense parameters
  float scale = 1;
  std::vector<TableRows> rows;  // by table
  std::vector<MicroBatchState> micro_batches;
  double loss_sum = 0;
  int64_t loss_samples = 0;
};

}  // namespace medley::worker

// The loops of the update rules (optimizer.h) and of sums, for the instructions that a processor has. All give the same
// bits: they differ only in how many elements an instruction computes. Internal to worker/params, but for the factors,
// which the same rules on a device use (worker/aten/resident_update.h).
// Thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "worker/params/optimizer.h"

namespace medley::worker {

// What a processor may have, in ascending order.
enum class Instructions { kBaseline, kAvx2, kAvx512 };
// What this processor has; the first is kBaseline.
std::vector<Instructions> AvailableInstructions();
// The last of them.
Instructions BestInstructions();

// The new spans may be the old ones: each element is read before it is written.
struct UpdateSpans {
  const float* weights;
  const float* state;
  const float* gradient;
  float* new_weights;
  float* new_state;
  size_t size;
};

// What a step's update computes once for all elements.
struct UpdateFactors {
  float keep1, add1, keep2, add2;  // of Adam's moments
  float rate, scale, epsilon;      // of Adam: lr / (1 - b1^t), 1 / sqrt(1 - b2^t)
  float decay;                     // of the gradient
  float shrink;                    // of the weights: 1 - lr * weight decay for AdamW, else 1
  float momentum;
  float keep, add;               // of RMSprop's mean square
  float l1, l2, beta, per_rate;  // of FTRL; per_rate: 1 / lr
};
UpdateFactors FactorsOf(const Optimizer& optimizer);

using UpdateKernel = void (*)(const UpdateSpans&, const UpdateFactors&);
// `instructions` must be available.
UpdateKernel UpdateKernelOf(const Optimizer& optimizer, Instructions instructions);

// to[i] += values[i] for 0 <= i < size.
using AddKernel = void (*)(float* to, const float* values, size_t size);
AddKernel AddKernelOf(Instructions instructions);

}  // namespace medley::worker

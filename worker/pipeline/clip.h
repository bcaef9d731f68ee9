// Clips gradients by the norm over all parameters, as torch.nn.utils.clip_grad_norm_ does. Pure, but for the gradients.
#pragma once

#include <array>

#include "worker/pipeline/block_compute.h"

namespace medley::worker {

// The sum of the squares of the gradients of the block's trained parameters, without copies of those of others.
double SquaredNorm(BlockCompute& block);

// Two floats whose sum is the number, to more digits than one float has.
std::array<float, 2> InTwoFloats(double number);
double FromTwoFloats(const std::array<float, 2>& floats);

// Multiplies the gradients of the block's trained parameters by min(1, norm / (sqrt(squares) + 1e-6)). `squares`: of
// all blocks together.
void ClipByNorm(BlockCompute& block, double norm, double squares);

}  // namespace medley::worker

// Clips gradients by the norm over all parameters, as torch.nn.utils.clip_grad_norm_ does: the arithmetic of the norm.
// Pure.
#pragma once

#include <array>

namespace medley::worker {

// Two floats whose sum is the number, to more digits than one float has.
std::array<float, 2> InTwoFloats(double number);
double FromTwoFloats(const std::array<float, 2>& floats);

// What gradients are multiplied by: min(1, norm / (sqrt(squares) + 1e-6)). `squares`: of all blocks together.
double ClipFactor(double norm, double squares);

}  // namespace medley::worker

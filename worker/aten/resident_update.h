// The update rules of worker/params/optimizer.h as calls of LibTorch, for parameters in the memory of a device. Equal
// to those of the host but for the rounding of single operations.
#pragma once

#include <array>

#include "worker/aten/torch.h"
#include "worker/params/optimizer.h"

namespace medley::worker::aten {

// Flat tensors of the same size, in one place. New ones may be the old ones. Of `state`, the first StateFloats are
// used.
struct UpdateTensors {
  at::Tensor weights, gradient;
  std::array<at::Tensor, 2> state;
  at::Tensor new_weights;
  std::array<at::Tensor, 2> new_state;
  std::array<at::Tensor, 2> scratch;  // of at least this size; their values are lost
};

// Throws what LibTorch throws. Allocates nothing but for FTRL.
void ApplyOnDevice(const Optimizer& optimizer, UpdateTensors tensors);

}  // namespace medley::worker::aten

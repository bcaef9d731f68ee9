// The update rules of worker/params/optimizer.h as calls of LibTorch, for parameters in the memory of a device. Equal
// to those of the host but for the rounding of single operations.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "worker/aten/torch.h"
#include "worker/params/optimizer.h"

namespace medley::worker::aten {

// The factors of an update that a schedule or the number of the step changes, in the device's memory: so an update that
// was recorded has those of its step. Others do not change while a job trains.
class ChangingFactors {
 public:
  // Calls of LibTorch, none where nothing changed; nothing is copied. Throws what LibTorch throws.
  void Set(const Optimizer& optimizer, const at::TensorOptions& place);

  // Numbers of the device without dimensions.
  at::Tensor rate, scale, shrink, per_rate;  // as in UpdateFactors

 private:
  std::array<float, 4> set_ = {};
};

// What decides about the kernels of an update besides ChangingFactors.
std::vector<uint64_t> FixedFactorsOf(const Optimizer& optimizer);

// Flat tensors of the same size, in one place. New ones may be the old ones. Of `state`, the first StateFloats are
// used.
struct UpdateTensors {
  at::Tensor weights, gradient;
  std::array<at::Tensor, 2> state;
  at::Tensor new_weights;
  std::array<at::Tensor, 2> new_state;
  std::array<at::Tensor, 2> scratch;         // of at least this size; their values are lost
  const ChangingFactors* factors = nullptr;  // those of the optimizer, which were set; null: made for this update
};

// Throws what LibTorch throws. Allocates nothing but for FTRL and without `factors`.
void ApplyOnDevice(const Optimizer& optimizer, UpdateTensors tensors);

}  // namespace medley::worker::aten

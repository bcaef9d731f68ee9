// Dropout's masks, computed on a device: the numbers of worker/model/random.h, so a sample has the same mask wherever
// it is trained.
#pragma once

#include <cstdint>

#include "worker/aten/torch.h"
#include "worker/model/random.h"

namespace medley::worker::aten {

// What changes from step to step in the draws of a pass, in the device's memory: a pass that was recorded draws those
// of its step.
class DrawCounters {
 public:
  // Calls of LibTorch that copy nothing.
  void Set(int64_t step, int64_t first_sample, const at::TensorOptions& place);
  // Numbers of the device without dimensions: the low 32 bits of both. Who asks for them draws by them.
  const at::Tensor& step() const { return used_ = true, step_; }
  const at::Tensor& first_sample() const { return used_ = true, first_sample_; }
  bool used() const { return used_; }

 private:
  at::Tensor step_, first_sample_;
  mutable bool used_ = false;
};

// Row i is DropoutMask of `first` with sample + i. Floats in the place of `options`; nothing is copied. `step` and
// `sample`, where they are defined, are in place of those of `first`.
at::Tensor MasksOnDevice(const Draw& first, double keep, int64_t rows, int64_t columns,
                         const at::TensorOptions& options, const at::Tensor& step = {}, const at::Tensor& sample = {});

}  // namespace medley::worker::aten

// What a trainer or profiler of a job computes on.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/app/environment.h"
#include "worker/device/device.h"

namespace medley::worker {

// Whether ChooseDevice may choose a GPU, without a look at it: only the program with LibTorch computes on one. Where
// the environment leaves it open, a program that was built for GPUs may, unless CUDA_VISIBLE_DEVICES is set and empty.
bool MayComputeOnGpu(const Environment& env, const GetVariable& get);

// Null: the CPU. Logs the choice. Errors: those of OpenGpu where MEDLEY_DEVICE is cuda, and of a GPU that fails.
absl::StatusOr<std::shared_ptr<device::Device>> ChooseDevice(const Environment& env);

}  // namespace medley::worker

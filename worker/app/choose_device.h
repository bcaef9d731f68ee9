// What a trainer or profiler of a job computes on.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/app/environment.h"
#include "worker/device/device.h"

namespace medley::worker {

// Null: the CPU, as for every model that did not come from PyTorch. Logs the choice. Errors: those of OpenGpu where
// MEDLEY_DEVICE is cuda, and of a GPU that fails.
absl::StatusOr<std::shared_ptr<device::Device>> ChooseDevice(const Environment& env);

}  // namespace medley::worker

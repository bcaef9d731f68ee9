// The device of the tests of places: that of guarded_backend.cc, or in the build with CUDA the GPU. The same tests run
// on both.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "worker/device/testing/counting_device.h"

namespace medley::worker::aten {

// Errors: those of OpenGpu, in the build with CUDA.
absl::StatusOr<std::shared_ptr<device::CountingDevice>> OpenTestedDevice();

}  // namespace medley::worker::aten

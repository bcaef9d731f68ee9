// The build without CUDA.
#include "common/base/status.h"
#include "worker/device/device.h"

namespace medley::worker::device {

bool BuiltForGpus() { return false; }

absl::StatusOr<std::shared_ptr<Device>> OpenGpu() {
  return base::Unimplemented("this build computes on CPUs only; `cmake --preset cuda` builds for GPUs");
}

}  // namespace medley::worker::device

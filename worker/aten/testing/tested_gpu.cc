// The build with CUDA.
#include "worker/aten/testing/tested_device.h"

namespace medley::worker::aten {

absl::StatusOr<std::shared_ptr<device::CountingDevice>> OpenTestedDevice() {
  auto gpu = device::OpenGpu();
  if (!gpu.ok()) return gpu.status();
  return std::make_shared<device::CountingDevice>(*std::move(gpu));
}

}  // namespace medley::worker::aten

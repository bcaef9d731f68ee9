#include "worker/app/choose_device.h"

#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {

absl::StatusOr<std::shared_ptr<device::Device>> ChooseDevice(const Environment& env) {
  if (env.device == DeviceChoice::kCpu) return nullptr;
  const bool demanded = env.device == DeviceChoice::kCuda;
  if (!env.spec.model.imported()) {
    if (demanded) base::log::Warn("computing on the CPU: only models that came from PyTorch are computed on GPUs");
    return nullptr;
  }
  if (!demanded && !device::BuiltForGpus()) return nullptr;
  auto gpu = device::OpenGpu();
  if (!gpu.ok() && demanded) return base::Annotate(gpu.status(), "MEDLEY_DEVICE=cuda");
  if (absl::IsNotFound(gpu.status())) {
    base::log::Info("computing on the CPU", {{"why", base::Message(gpu.status())}});
    return nullptr;
  }
  MEDLEY_RETURN_IF_ERROR(gpu.status());
  base::log::Info("computing on a GPU", {{"gpu", (*gpu)->name()}});
  return gpu;
}

}  // namespace medley::worker

#include "worker/app/choose_device.h"

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/device/bounded_device.h"
#include "worker/device/unrecorded_device.h"

namespace medley::worker {

bool MayComputeOnGpu(const Environment& env, const GetVariable& get) {
  if (env.device != DeviceChoice::kAuto) return env.device == DeviceChoice::kCuda;
  return device::BuiltForGpus() && get("CUDA_VISIBLE_DEVICES") != "";
}

absl::StatusOr<std::shared_ptr<device::Device>> ChooseDevice(const Environment& env) {
  if (env.device == DeviceChoice::kCpu) return nullptr;
  const bool demanded = env.device == DeviceChoice::kCuda;
  if (!demanded && !device::BuiltForGpus()) return nullptr;
  auto gpu = device::OpenGpu();
  if (!gpu.ok() && demanded) return base::Annotate(gpu.status(), "MEDLEY_DEVICE=cuda");
  if (absl::IsNotFound(gpu.status())) {
    base::log::Info("computing on the CPU", {{"why", base::Message(gpu.status())}});
    return nullptr;
  }
  MEDLEY_RETURN_IF_ERROR(gpu.status());
  base::log::Info("computing on a GPU", {{"gpu", (*gpu)->name()}});
  if (!env.graphs) gpu = std::make_shared<device::UnrecordedDevice>(*std::move(gpu));
  if (env.device_memory == 0) return gpu;
  return std::make_shared<device::BoundedDevice>(*std::move(gpu), env.device_memory);
}

}  // namespace medley::worker

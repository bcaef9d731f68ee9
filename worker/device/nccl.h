// Groups of GPUs over NCCL. Only in the build with CUDA, and only for files of worker/device.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>

#include "worker/device/device.h"

namespace medley::worker::device {

// Device documents both. JoinNccl uses the GPU of the calling thread.
absl::StatusOr<GroupKey> NewNcclKey();
absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinNccl(const GroupKey& key, int rank, int size,
                                                      base::milliseconds timeout, std::stop_token stop);

}  // namespace medley::worker::device

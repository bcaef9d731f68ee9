// A device of whose memory a unit has only a part: what pools say in spec.memory. Nothing stops an allocation beyond
// it; who looks at Memory() before it takes memory stays within. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "worker/device/forwarding_device.h"

namespace medley::worker::device {

class BoundedDevice final : public ForwardingDevice {
 public:
  BoundedDevice(std::shared_ptr<Device> device, int64_t bytes) : ForwardingDevice(std::move(device)), bytes_(bytes) {}

  // What other processes use counts as this one's.
  absl::StatusOr<DeviceMemory> Memory() const override {
    auto memory = ForwardingDevice::Memory();
    if (!memory.ok()) return memory;
    const int64_t used = memory->total - memory->free;
    return DeviceMemory{std::clamp<int64_t>(bytes_ - used, 0, memory->free), std::min(bytes_, memory->total)};
  }

 private:
  const int64_t bytes_;
};

}  // namespace medley::worker::device

// A device that records nothing, so that all kernels are given one by one: MEDLEY_GRAPHS=0. Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "common/base/status.h"
#include "worker/device/forwarding_device.h"

namespace medley::worker::device {

class UnrecordedDevice final : public ForwardingDevice {
 public:
  explicit UnrecordedDevice(std::shared_ptr<Device> device) : ForwardingDevice(std::move(device)) {}
  absl::Status BeginRecording() override { return base::FailedPrecondition("MEDLEY_GRAPHS is 0"); }
};

}  // namespace medley::worker::device

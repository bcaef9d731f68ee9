// What LibTorch must do differently while a device records: give the device's stream for recordings its kernels, and
// take memory from a pool that no other tensor gets until the recording is dropped.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>

#include "worker/device/device.h"

namespace medley::worker::aten {

// Memory of some recordings that are done again in the order in which they were made: what one of them has freed, a
// later one may use. Gives it back at the end of its life.
class RecordedMemory {
 public:
  virtual ~RecordedMemory() = default;
  // Calls `work`, all of whose kernels are for the device's stream for recordings, with memory of this pool.
  virtual void During(const std::function<void()>& work) = 0;
};

// LibTorch allocates the memory of `device`. Thread-safe.
std::shared_ptr<RecordedMemory> MakeRecordedMemory(const device::Device& device);

}  // namespace medley::worker::aten

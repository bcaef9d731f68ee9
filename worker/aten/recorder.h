// Lets a device record the kernels of work that is done again and again, and does the work by that recording: one call
// in place of one for each kernel, whose launches take longer than the kernels of a small model.
//
// Work is known by a key, which has everything that decides about its kernels and their memory: sizes, factors that
// are not in the device's memory, and the addresses of what it reads and writes. So work whose memory has moved is
// other work. Whatever cannot be recorded is given kernel by kernel, as without a recorder, and the log says why.
// Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/aten/place.h"
#include "worker/aten/recorded_memory.h"
#include "worker/device/device.h"
#include "worker/pipeline/recorded_work.h"

namespace medley::worker::aten {

class Recorder {
 public:
  using Key = std::vector<uint64_t>;
  static constexpr int kWarmUp = 2;  // so often work is done before it is recorded

  // `what`, for the log: "passes". Records nothing unless the place is apart from the host.
  Recorder(const Place& place, std::string what);

  // Records nothing from now on.
  void Stop(const std::string& reason);

  // Whether work of this key is to be recorded now, or was before. Not at first: libraries then choose kernels and
  // allocate what they keep.
  bool Wants(const Key& key);
  // Memory for one or more recordings that follow each other.
  std::shared_ptr<RecordedMemory> NewMemory() const { return MakeRecordedMemory(*device_); }
  // Has `work` recorded, whose kernels are not done by that. An error is noted as the reason why work of this key is
  // given kernel by kernel from now on.
  absl::StatusOr<std::unique_ptr<device::Recording>> Record(const Key& key, RecordedMemory& memory,
                                                            const std::function<absl::Status()>& work);
  absl::Status Replay(device::Recording& recording);

  // Does `work`, by a recording if there is one or is to be one. For work that leaves nothing but values at addresses
  // of the key.
  absl::Status Do(const Key& key, const std::function<absl::Status()>& work);

  const RecordingCounts& counts() const { return counts_; }

 private:
  struct Known {
    int done = 0;
    bool refused = false;
    std::shared_ptr<RecordedMemory> memory;  // of Do
    std::unique_ptr<device::Recording> recording;
  };
  void Say(const std::string& reason);
  absl::Status HasRoom() const;

  std::shared_ptr<device::Device> device_;  // null: nothing is recorded
  const std::string what_;
  std::map<Key, Known> known_;
  int64_t largest_ = 0;  // bytes of a recording
  RecordingCounts counts_;
};

// For keys.
uint64_t AddressOf(const at::Tensor& tensor);

}  // namespace medley::worker::aten

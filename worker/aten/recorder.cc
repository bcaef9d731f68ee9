#include "worker/aten/recorder.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/aten/caught.h"

namespace medley::worker::aten {
namespace {

constexpr size_t kMostKeys = 64;  // of a block: more are work whose sizes change from step to step

}  // namespace

uint64_t AddressOf(const at::Tensor& tensor) {
  return tensor.defined() ? reinterpret_cast<uintptr_t>(tensor.data_ptr()) : 0;
}

Recorder::Recorder(const Place& place, std::string what) : what_(std::move(what)) {
  if (place.apart() && !place.device().is_cpu()) device_ = place.owner();
}

bool Recorder::Wants(const Key& key) {
  if (device_ == nullptr) return false;
  const auto found = known_.find(key);
  if (found == known_.end() && known_.size() >= kMostKeys) {
    if (counts_.recorded == 0 && counts_.reason.empty()) {
      Say("its sizes change from step to step");
    }
    ++counts_.one_by_one;
    return false;
  }
  Known& known = found == known_.end() ? known_[key] : found->second;
  if (!known.refused && known.done >= kWarmUp) return true;
  ++known.done;
  ++counts_.one_by_one;
  return false;
}

void Recorder::Stop(const std::string& reason) {
  if (device_ == nullptr) return;
  device_ = nullptr;
  Say(reason);
}

void Recorder::Say(const std::string& reason) {
  if (counts_.reason == reason) return;
  counts_.reason = reason;
  base::log::Info("the kernels of this work are given to the device one by one", {{"work", what_}, {"reason", reason}});
}

// What a first recording takes is not known before it is made; if it takes too much, the step goes on without.
absl::Status Recorder::HasRoom() const {
  MEDLEY_ASSIGN_OR_RETURN(const device::DeviceMemory memory, device_->Memory());
  if (largest_ <= memory.free / 4) return absl::OkStatus();
  return base::ResourceExhausted("another recording of {} bytes would take more than a quarter of the {} that are free",
                                 largest_, memory.free);
}

absl::StatusOr<std::unique_ptr<device::Recording>> Recorder::Record(const Key& key, RecordedMemory& memory,
                                                                    const std::function<absl::Status()>& work) {
  std::unique_ptr<device::Recording> recording;
  const auto record = [&]() -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(HasRoom());
    MEDLEY_ASSIGN_OR_RETURN(const device::DeviceMemory before, device_->Memory());
    absl::Status done;
    memory.During([&] {
      done = device_->BeginRecording();
      if (!done.ok()) return;
      done = Caught(what_, work);
      auto ended = device_->EndRecording();
      done.Update(ended.status());
      if (done.ok()) recording = *std::move(ended);
    });
    MEDLEY_RETURN_IF_ERROR(done);
    MEDLEY_ASSIGN_OR_RETURN(const device::DeviceMemory after, device_->Memory());
    const int64_t bytes = std::max<int64_t>(0, before.free - after.free);
    largest_ = std::max(largest_, bytes);
    counts_.bytes += bytes;
    if (counts_.recorded++ == 0) {
      base::log::Info("the device records kernels and does them again",
                      {{"work", what_}, {"bytes", std::to_string(bytes)}});
    }
    return absl::OkStatus();
  };
  const absl::Status status = Caught(what_, record);
  if (status.ok()) return recording;
  known_[key].refused = true;
  Say(base::Message(status));
  ++counts_.one_by_one;
  return status;
}

absl::Status Recorder::Replay(device::Recording& recording) {
  ++counts_.replayed;
  return recording.Replay();
}

absl::Status Recorder::Do(const Key& key, const std::function<absl::Status()>& work) {
  if (!Wants(key)) return work();
  Known& known = known_.at(key);
  if (known.recording == nullptr) {
    known.memory = NewMemory();
    auto recorded = Record(key, *known.memory, work);
    if (!recorded.ok()) return work();
    known.recording = *std::move(recorded);
  }
  return Replay(*known.recording);
}

}  // namespace medley::worker::aten

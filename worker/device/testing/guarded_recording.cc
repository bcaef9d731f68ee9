// Recordings of GuardedMemory: kernels that are kept and done again.
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "common/base/status.h"
#include "worker/device/testing/guarded_memory.h"

namespace medley::worker::device {
namespace {

// A block that a kernel has not opened, while one of these exists.
class Unprotected {
 public:
  Unprotected(void* address, size_t mapped, bool opened) : address_(address), mapped_(mapped), opened_(opened) {
    if (!opened_) Set(PROT_READ | PROT_WRITE);
  }
  ~Unprotected() {
    if (!opened_) Set(PROT_NONE);
  }
  Unprotected(const Unprotected&) = delete;
  Unprotected& operator=(const Unprotected&) = delete;

 private:
  void Set(int how) const {
    MEDLEY_CHECK(mprotect(address_, mapped_, how) == 0, "the pages of a block cannot be protected");
  }
  void* const address_;
  const size_t mapped_;
  const bool opened_;
};

}  // namespace

absl::Status GuardedMemory::BeginRecording() {
  const std::unique_lock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(Check());
  if (recording_.has_value()) return base::Internal("the test device records already");
  recording_.emplace().number = ++recorded_;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> GuardedMemory::EndRecording() {
  const std::unique_lock lock(mutex_);
  if (!recording_.has_value()) return base::Internal("the test device does not record");
  Recorded recorded = *std::exchange(recording_, std::nullopt);
  for (auto& [address, bytes] : std::exchange(recorded.before, {})) {
    const auto block = blocks_.find(address);
    if (block == blocks_.end()) continue;
    const Unprotected open(address, block->second.mapped, block->second.opened > 0);
    std::memcpy(address, bytes.data(), bytes.size());
  }
  for (auto& [address, block] : blocks_) {
    if (block.recording != recorded.number) continue;
    const Unprotected open(address, block.mapped, block.opened > 0);
    std::memset(address, kGuardedPoison, block.mapped);
  }
  const int64_t number = recorded.number;
  const absl::Status failed = recorded.failed.ok() ? Check() : recorded.failed;
  recordings_.emplace(number, std::move(recorded));
  if (failed.ok()) return number;
  DropRecording(number);
  return failed;
}

absl::Status GuardedMemory::Replay(int64_t number) {
  const std::unique_lock lock(mutex_);
  MEDLEY_RETURN_IF_ERROR(Check());
  MEDLEY_RETURN_IF_ERROR(NotRecorded("a recording"));
  CountLaunch();
  for (const RecordedKernel& kernel : recordings_.at(number).kernels) {
    Opened opened(*this);
    for (const Used& used : kernel.uses) {
      const auto block = blocks_.find(used.block);
      if (block == blocks_.end() || block->second.serial != used.serial) {
        return base::Internal("a recording uses a block of {} bytes of the device that was freed since it was made",
                              used.bytes);
      }
      opened.Open(used.block);
    }
    MEDLEY_RETURN_IF_ERROR(kernel.again());
  }
  return Check();
}

void GuardedMemory::DropRecording(int64_t number) {
  const std::unique_lock lock(mutex_);
  recordings_.erase(number);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const auto next = std::next(block);
    if (block->second.recording == number) {
      block->second.recording = 0;
      if (block->second.released) FreeNow(block);
    }
    block = next;
  }
}

bool GuardedMemory::recording() const {
  const std::unique_lock lock(mutex_);
  return recording_.has_value();
}

absl::Status GuardedMemory::NotRecorded(std::string_view what) {
  const std::unique_lock lock(mutex_);
  if (!recording_.has_value()) return absl::OkStatus();
  const absl::Status failed = base::Internal("{} cannot be recorded", what);
  recording_->failed.Update(failed);
  return failed;
}

void GuardedMemory::KeepForRecording(void* address, const Block& block) {
  if (!recording_.has_value() || block.recording == recording_->number) return;
  const auto [kept, added] = recording_->before.try_emplace(address);
  if (added) kept->second.assign(static_cast<std::byte*>(address), static_cast<std::byte*>(address) + block.bytes);
}

void GuardedMemory::Opened::Record(std::function<absl::Status()> again) {
  if (!memory_.recording_.has_value()) return;
  RecordedKernel& kernel = memory_.recording_->kernels.emplace_back();
  for (void* const address : blocks_) {
    const Block& block = memory_.blocks_.at(address);
    kernel.uses.push_back({address, block.serial, block.bytes});
  }
  kernel.again = std::move(again);
}

void GuardedMemory::CountLaunch() {
  const std::unique_lock lock(mutex_);
  ++launches_;
}

int64_t GuardedMemory::launches() const {
  const std::unique_lock lock(mutex_);
  return launches_;
}

}  // namespace medley::worker::device

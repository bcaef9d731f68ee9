// A device for tests with memory of its own (guarded_memory.h), which trainers use as they use a GPU: LibTorch knows it
// by worker/aten/testing/guarded_backend.cc. Its groups are ranks of one process, those of HostDevice. Thread-safe.
#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include "worker/device/testing/guarded_memory.h"
#include "worker/device/testing/host_device.h"

namespace medley::worker::device {

class GuardedDevice final : public Device {
 public:
  std::string name() const override { return "test device"; }
  DeviceId id() const override { return {std::byte{'t'}}; }
  DeviceKind kind() const override { return DeviceKind::kTest; }
  int index() const override { return 0; }
  absl::StatusOr<DeviceMemory> Memory() const override {
    const int64_t total = memory().total();
    return DeviceMemory{std::max<int64_t>(0, total - static_cast<int64_t>(memory().used())), total};
  }
  absl::Status Check() const override { return memory().Check(); }
  absl::Status CopyIn(std::span<const std::byte> from, void* to) override { return memory().CopyIn(from, to); }
  absl::Status CopyOut(const void* from, std::span<std::byte> to) override { return memory().CopyOut(from, to); }
  absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) override {
    return std::make_unique<PlainMemory>(bytes);
  }
  absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() override {
    MEDLEY_RETURN_IF_ERROR(memory().Check());
    return std::make_shared<const Moment>(memory().Now());
  }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark* after) override {
    const GuardedStreams::Moment begin = after == nullptr ? GuardedStreams::Moment{} : MomentOf(*after);
    MEDLEY_ASSIGN_OR_RETURN(const int64_t copy, memory().StartCopyIn(from.bytes().first(bytes), to, begin));
    return std::make_shared<const Moment>(GuardedStreams::Moment{{0, copy}});
  }
  absl::Status ComputeWaits(const Mark& mark) override { return memory().KernelsWait(MomentOf(mark)); }
  absl::Status Await(const Mark& mark) override { return memory().Finish(MomentOf(mark)); }
  absl::Status BeginRecording() override { return memory().BeginRecording(); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    MEDLEY_ASSIGN_OR_RETURN(const int64_t number, memory().EndRecording());
    return std::make_unique<Kept>(number);
  }
  void* RecordingStream() const override { return nullptr; }
  absl::StatusOr<GroupKey> NewGroupKey() override { return groups_.NewGroupKey(); }
  absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int rank, int size,
                                                         base::milliseconds timeout, std::stop_token stop) override {
    return groups_.JoinGroup(key, rank, size, timeout, std::move(stop));
  }

  static GuardedMemory& memory() { return GuardedMemory::OfProcess(); }

 private:
  struct Moment final : Mark {
    explicit Moment(const GuardedStreams::Moment& is) : moment(is) {}
    const GuardedStreams::Moment moment;
  };
  class Kept final : public Recording {
   public:
    explicit Kept(int64_t number) : number_(number) {}
    ~Kept() override { memory().DropRecording(number_); }
    absl::Status Replay() override { return memory().Replay(number_); }

   private:
    const int64_t number_;
  };
  static const GuardedStreams::Moment& MomentOf(const Mark& mark) { return static_cast<const Moment&>(mark).moment; }

  HostDevice groups_{0};
};

}  // namespace medley::worker::device

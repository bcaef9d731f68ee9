// A device for tests, whose memory is a part of the host's that nobody else writes to: what is not copied to it or from
// it is missed there too. Its groups are ranks of one process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/device/device.h"

namespace medley::worker::device {

// Memory of the host as any other.
class PlainMemory final : public HostBuffer {
 public:
  explicit PlainMemory(size_t bytes) : memory_(bytes) {}
  std::span<std::byte> bytes() const override { return memory_; }

 private:
  mutable std::vector<std::byte> memory_;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(int number) : number_(number) {}

  std::string name() const override { return "host"; }
  DeviceId id() const override { return {static_cast<std::byte>(number_)}; }
  DeviceKind kind() const override { return DeviceKind::kHost; }
  int index() const override { return 0; }
  absl::StatusOr<DeviceMemory> Memory() const override { return DeviceMemory{int64_t{1} << 30, int64_t{2} << 30}; }
  absl::Status Check() const override { return absl::OkStatus(); }
  absl::Status CopyIn(std::span<const std::byte> from, void* to) override {
    bytes_in_ += from.size();
    std::memcpy(to, from.data(), from.size());
    return absl::OkStatus();
  }
  absl::Status CopyOut(const void* from, std::span<std::byte> to) override {
    if (fails_) return base::Internal("the device is broken");
    bytes_out_ += to.size();
    std::memcpy(to.data(), from, to.size());
    return absl::OkStatus();
  }
  // Every copy is done before it returns.
  absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) override {
    return std::make_unique<PlainMemory>(bytes);
  }
  absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() override { return std::make_shared<const Mark>(); }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark*) override {
    MEDLEY_RETURN_IF_ERROR(CopyIn(from.bytes().first(bytes), to));
    return MarkCompute();
  }
  absl::Status ComputeWaits(const Mark&) override { return absl::OkStatus(); }
  absl::Status Await(const Mark&) override { return absl::OkStatus(); }
  absl::Status BeginRecording() override { return base::Unimplemented("the host records no kernels"); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override { return BeginRecording(); }
  void* RecordingStream() const override { return nullptr; }
  absl::StatusOr<GroupKey> NewGroupKey() override {
    static std::atomic<unsigned char> next{1};
    return GroupKey{std::byte{next++}};
  }
  absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int, int size, base::milliseconds,
                                                         std::stop_token) override {
    static base::Mutex mutex;
    static std::map<GroupKey, std::shared_ptr<Sums>> known;
    const base::MutexLock lock(mutex);
    std::shared_ptr<Sums>& sums = known[key];
    if (sums == nullptr) sums = std::make_shared<Sums>(size);
    return std::make_unique<HostGroup>(sums);
  }

  void SetFails(bool fails) { fails_ = fails; }  // of CopyOut
  size_t bytes_in() const { return bytes_in_; }
  size_t bytes_out() const { return bytes_out_; }

 private:
  class Sums {
   public:
    explicit Sums(int size) : size_(size) {}
    absl::Status Sum(std::span<float> values, base::milliseconds timeout) {
      const base::MutexLock lock(mutex_);
      if (arrived_ == 0) sum_.assign(values.size(), 0);
      for (size_t i = 0; i < values.size(); ++i) sum_[i] += values[i];
      const int round = round_;
      if (++arrived_ == size_) {
        arrived_ = 0;
        ++round_;
        result_ = sum_;
        changed_.NotifyAll();
      }
      const bool all = changed_.WaitFor(mutex_, {}, timeout, [&] { return round_ > round || aborted_; });
      if (aborted_) return base::Aborted("aborted");
      if (!all) return base::DeadlineExceeded("a rank is missing");
      std::ranges::copy(result_, values.begin());
      return absl::OkStatus();
    }
    void Abort() {
      const base::MutexLock lock(mutex_);
      aborted_ = true;
      changed_.NotifyAll();
    }

   private:
    const int size_;
    base::Mutex mutex_;
    base::CondVar changed_;
    std::vector<float> sum_, result_;
    int arrived_ = 0, round_ = 0;
    bool aborted_ = false;
  };

  class HostGroup final : public DeviceGroup {
   public:
    explicit HostGroup(std::shared_ptr<Sums> sums) : sums_(std::move(sums)) {}
    absl::Status Sum(std::span<float> values, base::milliseconds timeout) override {
      return sums_->Sum(values, timeout);
    }
    void Abort() override { sums_->Abort(); }

   private:
    const std::shared_ptr<Sums> sums_;
  };

  const int number_;
  std::atomic<size_t> bytes_in_{0}, bytes_out_{0};
  std::atomic<bool> fails_{false};
};

}  // namespace medley::worker::device

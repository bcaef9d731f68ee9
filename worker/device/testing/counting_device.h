// Passes everything on to another device and counts the bytes that are copied, for tests and benches. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "worker/device/device.h"
#include "worker/device/testing/copy_counts.h"

namespace medley::worker::device {

class CountingDevice final : public Device {
 public:
  explicit CountingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  DeviceId id() const override { return device_->id(); }
  DeviceKind kind() const override { return device_->kind(); }
  int index() const override { return device_->index(); }
  absl::StatusOr<DeviceMemory> Memory() const override {
    auto memory = device_->Memory();
    if (memory.ok()) memory->free = std::min<int64_t>(memory->free, most_free_);
    return memory;
  }
  // From then on Memory() says that at most so many bytes are free.
  void SetMostFree(int64_t bytes) { most_free_ = bytes; }
  absl::Status Check() const override { return device_->Check(); }
  absl::Status CopyIn(std::span<const std::byte> from, void* to) override {
    bytes_in_ += from.size();
    ++calls_in_;
    return device_->CopyIn(from, to);
  }
  absl::Status CopyOut(const void* from, std::span<std::byte> to) override {
    bytes_out_ += to.size();
    ++calls_out_;
    return device_->CopyOut(from, to);
  }
  absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) override {
    return device_->NewHostBuffer(bytes);
  }
  absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() override { return device_->MarkCompute(); }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark* after) override {
    bytes_in_ += bytes;
    ++calls_in_;
    return device_->StartCopyIn(from, bytes, to, after);
  }
  absl::Status ComputeWaits(const Mark& mark) override { return device_->ComputeWaits(mark); }
  absl::Status Await(const Mark& mark) override { return device_->Await(mark); }
  absl::StatusOr<GroupKey> NewGroupKey() override { return device_->NewGroupKey(); }
  absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int rank, int size,
                                                         base::milliseconds timeout, std::stop_token stop) override {
    return device_->JoinGroup(key, rank, size, timeout, std::move(stop));
  }

  size_t bytes_in() const { return bytes_in_; }
  size_t bytes_out() const { return bytes_out_; }
  CopyCounts counts() const {
    return {static_cast<int64_t>(bytes_in_), calls_in_, static_cast<int64_t>(bytes_out_), calls_out_};
  }

 private:
  const std::shared_ptr<Device> device_;
  std::atomic<size_t> bytes_in_{0}, bytes_out_{0};
  std::atomic<int64_t> calls_in_{0}, calls_out_{0};
  std::atomic<int64_t> most_free_{std::numeric_limits<int64_t>::max()};
};

}  // namespace medley::worker::device

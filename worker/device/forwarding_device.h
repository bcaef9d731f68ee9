// Passes everything on to another device: a base for those that change one thing. Thread-safe, as the other is.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "worker/device/device.h"

namespace medley::worker::device {

class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string name() const override { return device_->name(); }
  DeviceId id() const override { return device_->id(); }
  DeviceKind kind() const override { return device_->kind(); }
  int index() const override { return device_->index(); }
  absl::StatusOr<DeviceMemory> Memory() const override { return device_->Memory(); }
  absl::Status Check() const override { return device_->Check(); }
  absl::Status CopyIn(std::span<const std::byte> from, void* to) override { return device_->CopyIn(from, to); }
  absl::Status CopyOut(const void* from, std::span<std::byte> to) override { return device_->CopyOut(from, to); }
  absl::StatusOr<std::unique_ptr<HostBuffer>> NewHostBuffer(size_t bytes) override {
    return device_->NewHostBuffer(bytes);
  }
  absl::StatusOr<std::shared_ptr<const Mark>> MarkCompute() override { return device_->MarkCompute(); }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark* after) override {
    return device_->StartCopyIn(from, bytes, to, after);
  }
  absl::Status ComputeWaits(const Mark& mark) override { return device_->ComputeWaits(mark); }
  absl::Status Await(const Mark& mark) override { return device_->Await(mark); }
  absl::Status BeginRecording() override { return device_->BeginRecording(); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override { return device_->EndRecording(); }
  void* RecordingStream() const override { return device_->RecordingStream(); }
  absl::StatusOr<GroupKey> NewGroupKey() override { return device_->NewGroupKey(); }
  absl::StatusOr<std::unique_ptr<DeviceGroup>> JoinGroup(const GroupKey& key, int rank, int size,
                                                         base::milliseconds timeout, std::stop_token stop) override {
    return device_->JoinGroup(key, rank, size, timeout, std::move(stop));
  }

 protected:
  Device& device() const { return *device_; }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace medley::worker::device

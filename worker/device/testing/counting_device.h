// Passes everything on to another device and counts the bytes that are copied, for tests and benches. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "worker/device/forwarding_device.h"
#include "worker/device/testing/copy_counts.h"

namespace medley::worker::device {

class CountingDevice final : public ForwardingDevice {
 public:
  explicit CountingDevice(std::shared_ptr<Device> device) : ForwardingDevice(std::move(device)) {}

  absl::StatusOr<DeviceMemory> Memory() const override {
    auto memory = ForwardingDevice::Memory();
    if (memory.ok()) memory->free = std::min<int64_t>(memory->free, most_free_);
    return memory;
  }
  // From then on Memory() says that at most so many bytes are free.
  void SetMostFree(int64_t bytes) { most_free_ = bytes; }

  absl::Status CopyIn(std::span<const std::byte> from, void* to) override {
    bytes_in_ += from.size();
    ++calls_in_;
    return ForwardingDevice::CopyIn(from, to);
  }
  absl::Status CopyOut(const void* from, std::span<std::byte> to) override {
    bytes_out_ += to.size();
    ++calls_out_;
    return ForwardingDevice::CopyOut(from, to);
  }
  absl::StatusOr<std::shared_ptr<const Mark>> StartCopyIn(const HostBuffer& from, size_t bytes, void* to,
                                                          const Mark* after) override {
    bytes_in_ += bytes;
    ++calls_in_;
    return ForwardingDevice::StartCopyIn(from, bytes, to, after);
  }

  size_t bytes_in() const { return bytes_in_; }
  size_t bytes_out() const { return bytes_out_; }
  CopyCounts counts() const {
    return {static_cast<int64_t>(bytes_in_), calls_in_, static_cast<int64_t>(bytes_out_), calls_out_};
  }

 private:
  std::atomic<size_t> bytes_in_{0}, bytes_out_{0};
  std::atomic<int64_t> calls_in_{0}, calls_out_{0};
  std::atomic<int64_t> most_free_{std::numeric_limits<int64_t>::max()};
};

}  // namespace medley::worker::device

// Where the tensors of a block are: in the host's memory or in that of a device, and copies between both.
//
// Copies that carry data of a step go through the Device, which passes them through pinned memory and counts them.
// Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <span>

#include "worker/aten/torch.h"
#include "worker/device/device.h"

namespace medley::worker::aten {

class Place {
 public:
  // null: the host.
  explicit Place(std::shared_ptr<device::Device> device);

  at::Device device() const { return tensors_; }
  bool apart() const { return device_ != nullptr; }
  const std::shared_ptr<device::Device>& owner() const { return device_; }  // null: the host
  at::TensorOptions Floats() const { return at::TensorOptions().dtype(at::kFloat).device(tensors_); }

  // A tensor that is in place already is returned as it is. Errors: those of Device.
  absl::StatusOr<at::Tensor> ToPlace(const at::Tensor& host) const;
  // The same, into `placed` where it has the same type and sizes: its address stays then.
  absl::Status Renew(const at::Tensor& host, at::Tensor& placed) const;
  absl::StatusOr<at::Tensor> ToHost(const at::Tensor& placed) const;
  // Floats of the host's memory to and from a contiguous tensor of as many.
  absl::Status CopyIn(std::span<const float> from, const at::Tensor& to) const;
  absl::Status CopyOut(const at::Tensor& from, std::span<float> to) const;

 private:
  std::shared_ptr<device::Device> device_;
  at::Device tensors_;
};

// A tensor over floats of the host's memory. LibTorch has no tensors over constant memory; nobody writes to this one.
at::Tensor Over(std::span<const float> values, at::IntArrayRef sizes);

}  // namespace medley::worker::aten

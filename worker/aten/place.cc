#include "worker/aten/place.h"

#include <utility>

#include "common/base/status.h"

namespace medley::worker::aten {
namespace {

at::Device TensorsOf(const device::Device* device) {
  if (device == nullptr) return at::kCPU;
  const auto index = static_cast<c10::DeviceIndex>(device->index());
  switch (device->kind()) {
    case device::DeviceKind::kHost:
      return at::kCPU;
    case device::DeviceKind::kCuda:
      return {at::kCUDA, index};
    case device::DeviceKind::kTest:
      return {c10::DeviceType::PrivateUse1, index};
  }
  return at::kCPU;
}

}  // namespace

Place::Place(std::shared_ptr<device::Device> device) : device_(std::move(device)), tensors_(TensorsOf(device_.get())) {}

absl::StatusOr<at::Tensor> Place::ToPlace(const at::Tensor& host) const {
  if (!apart()) return host;
  const at::Tensor from = host.contiguous();
  const at::Tensor placed = at::empty(from.sizes(), from.options().device(tensors_));
  MEDLEY_RETURN_IF_ERROR(
      device_->CopyIn({static_cast<const std::byte*>(from.data_ptr()), from.nbytes()}, placed.data_ptr()));
  return placed;
}

absl::Status Place::Renew(const at::Tensor& host, at::Tensor& placed) const {
  if (!apart() || !placed.defined() || placed.scalar_type() != host.scalar_type() || placed.sizes() != host.sizes()) {
    MEDLEY_ASSIGN_OR_RETURN(placed, ToPlace(host));
    return absl::OkStatus();
  }
  const at::Tensor from = host.contiguous();
  return device_->CopyIn({static_cast<const std::byte*>(from.data_ptr()), from.nbytes()}, placed.data_ptr());
}

absl::StatusOr<at::Tensor> Place::ToHost(const at::Tensor& placed) const {
  if (!apart() || !placed.defined()) return placed;
  const at::Tensor from = at::detach(placed).contiguous();
  const at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));
  MEDLEY_RETURN_IF_ERROR(device_->CopyOut(from.data_ptr(), {static_cast<std::byte*>(host.data_ptr()), host.nbytes()}));
  return host;
}

absl::Status Place::CopyIn(std::span<const float> from, const at::Tensor& to) const {
  return device_->CopyIn(std::as_bytes(from), to.data_ptr());
}

absl::Status Place::CopyOut(const at::Tensor& from, std::span<float> to) const {
  return device_->CopyOut(from.data_ptr(), std::as_writable_bytes(to));
}

at::Tensor Over(std::span<const float> values, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(values.data()), sizes, at::TensorOptions().dtype(at::kFloat));
}

}  // namespace medley::worker::aten

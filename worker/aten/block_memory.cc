#include "worker/aten/block_memory.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace medley::worker::aten {
namespace {

// For a parameter on the device: the fast kernels of cuDNN and LibTorch load this many bytes at once.
constexpr uintptr_t kAlignment = 16;

at::TensorOptions Floats() { return at::TensorOptions().dtype(at::kFloat); }

// LibTorch has no tensors over constant memory; nobody writes to these.
at::Tensor Over(std::span<const float> values, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(values.data()), sizes, Floats());
}

}  // namespace

BlockMemory::BlockMemory(const std::vector<worker::ParameterSpec>& specs, const worker::Optimizer& optimizer,
                         uint64_t seed, int kept_updates, std::shared_ptr<device::Device> device)
    : device_(std::move(device)),
      place_(device_ == nullptr || device_->index() < 0
                 ? at::Device(at::kCPU)
                 : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_->index()))),
      store_(specs, optimizer, seed, kept_updates),
      most_copies_(static_cast<size_t>(kept_updates) + 1),
      touched_(specs.size(), false) {
  for (const worker::ParameterSpec& spec : specs) {
    offsets_.push_back(size_);
    size_ += spec.Size();
  }
}

absl::StatusOr<at::Tensor> BlockMemory::ToPlace(const at::Tensor& host) {
  if (!apart()) return host;
  const at::Tensor from = host.contiguous();
  const at::Tensor placed = at::empty(from.sizes(), from.options().device(place_));
  MEDLEY_RETURN_IF_ERROR(
      device_->CopyIn({static_cast<const std::byte*>(from.data_ptr()), from.nbytes()}, placed.data_ptr()));
  return placed;
}

absl::StatusOr<at::Tensor> BlockMemory::ToHost(const at::Tensor& placed) {
  if (!apart() || !placed.defined()) return placed;
  const at::Tensor from = at::detach(placed).contiguous();
  const at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));
  MEDLEY_RETURN_IF_ERROR(device_->CopyOut(from.data_ptr(), {static_cast<std::byte*>(host.data_ptr()), host.nbytes()}));
  return host;
}

absl::StatusOr<BlockMemory::Copy*> BlockMemory::CopyOf(int64_t version) {
  const auto found = std::ranges::find(copies_, version, &Copy::version);
  if (found != copies_.end()) return &*found;
  if (copies_.size() >= most_copies_) copies_.pop_front();
  // The parameters of a version lie one after the other.
  const std::span<const float> all(store_.WeightsOf(version, 0).data(), static_cast<size_t>(size_));
  MEDLEY_ASSIGN_OR_RETURN(const at::Tensor values, ToPlace(Over(all, {size_})));
  copies_.push_back({version, values, {}});
  return &copies_.back();
}

absl::StatusOr<at::Tensor> BlockMemory::Values(int64_t version, size_t parameter, at::IntArrayRef sizes) {
  if (!apart()) return Over(store_.WeightsOf(version, parameter), sizes);
  MEDLEY_ASSIGN_OR_RETURN(Copy* const copy, CopyOf(version));
  at::Tensor values = copy->values.narrow(0, OffsetOf(parameter), c10::multiply_integers(sizes)).view(sizes);
  if (reinterpret_cast<uintptr_t>(values.data_ptr()) % kAlignment == 0) return values;
  at::Tensor& aligned = copy->aligned[parameter];
  if (!aligned.defined()) aligned = values.clone();
  return aligned;
}

absl::Status BlockMemory::BeginGradients(int64_t step) {
  if (step == gradient_step_) return absl::OkStatus();
  std::fill(touched_.begin(), touched_.end(), false);
  gradient_step_ = step;
  if (!apart()) return absl::OkStatus();
  if (sums_.defined()) {
    sums_.zero_();
  } else {
    sums_ = at::zeros({size_}, Floats().device(place_));
  }
  uncollected_ = true;
  return absl::OkStatus();
}

void BlockMemory::ForgetGradients(int64_t step) {
  if (step <= gradient_step_) gradient_step_ = kNoStep;
}

void BlockMemory::AddGradient(size_t parameter, const at::Tensor& gradient, float factor) {
  if (apart()) {
    sums_.narrow(0, OffsetOf(parameter), gradient.numel()).view(gradient.sizes()).add_(gradient, factor);
    uncollected_ = true;
    return;
  }
  const at::Tensor sum = Over(store_.Gradient(parameter), gradient.sizes());
  if (!touched_[parameter]) sum.zero_();
  sum.add_(gradient, factor);
  touched_[parameter] = true;
}

absl::Status BlockMemory::CollectGradients() {
  if (uncollected_) {
    if (size_ > 0)
      MEDLEY_RETURN_IF_ERROR(device_->CopyOut(sums_.data_ptr(), std::as_writable_bytes(store_.Gradients())));
    uncollected_ = false;
    std::fill(touched_.begin(), touched_.end(), true);
  }
  for (size_t i = 0; i < touched_.size(); ++i) {
    if (!touched_[i]) std::ranges::fill(store_.Gradient(i), 0.0F);
    touched_[i] = true;
  }
  return absl::OkStatus();
}

}  // namespace medley::worker::aten

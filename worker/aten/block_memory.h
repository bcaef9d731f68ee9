// The parameters and gradients of a block where it computes: in the host's memory, or in copies on a GPU.
//
// The values are those of a DenseStore. On the CPU tensors refer to its memory. A GPU has a copy of each version in
// use, made when the version is first asked for, and a sum of gradients, which is copied to the host once a step.
// Not thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "worker/aten/torch.h"
#include "worker/device/device.h"
#include "worker/model/dense_store.h"

namespace medley::worker::aten {

class BlockMemory {
 public:
  // `device`: null computes on the CPU. Other arguments: those of DenseStore.
  BlockMemory(const std::vector<worker::ParameterSpec>& specs, const worker::Optimizer& optimizer, uint64_t seed,
              int kept_updates, std::shared_ptr<device::Device> device);

  worker::DenseStore& store() { return store_; }
  const worker::DenseStore& store() const { return store_; }
  at::Device place() const { return place_; }  // of all tensors of the block

  // Copies to and from the place; a tensor that is in place already is returned as it is. Errors: those of Device.
  absl::StatusOr<at::Tensor> ToPlace(const at::Tensor& host);
  absl::StatusOr<at::Tensor> ToHost(const at::Tensor& placed);

  // A parameter's values after step `version`; valid until that version is overwritten. Nobody may write to them.
  absl::StatusOr<at::Tensor> Values(int64_t version, size_t parameter, at::IntArrayRef sizes);
  // The store's values were written from outside: copies are out of date.
  void ForgetCopies() { copies_.clear(); }

  // Adds to the gradient of a step; a step other than the one before begins with zeros.
  absl::Status BeginGradients(int64_t step);
  void AddGradient(size_t parameter, const at::Tensor& gradient, float factor);
  // The step is repeated after a rollback, from `step` on.
  void ForgetGradients(int64_t step);
  // Brings the sums to the store: after the last AddGradient of a step. Later calls do nothing, unless it failed.
  absl::Status CollectGradients();

 private:
  static constexpr int64_t kNoStep = -1;
  struct Copy {
    int64_t version = 0;
    at::Tensor values;                     // of all parameters, one after the other
    std::map<size_t, at::Tensor> aligned;  // by parameter: a copy of one whose place there is not aligned
  };

  bool apart() const { return device_ != nullptr; }
  // Where a parameter begins among all.
  int64_t OffsetOf(size_t parameter) const { return offsets_[parameter]; }
  absl::StatusOr<Copy*> CopyOf(int64_t version);

  const std::shared_ptr<device::Device> device_;
  const at::Device place_;
  worker::DenseStore store_;
  std::vector<int64_t> offsets_;
  int64_t size_ = 0;
  const size_t most_copies_;
  std::deque<Copy> copies_;  // the oldest first
  int64_t gradient_step_ = kNoStep;
  std::vector<bool> touched_;  // by parameter: its gradient belongs to gradient_step_
  at::Tensor sums_;            // on a GPU: of gradients
  bool uncollected_ = false;   // sums_ is newer than the store
};

}  // namespace medley::worker::aten

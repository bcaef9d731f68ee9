// The dense parameters of a stage in flat buffers for weights, optimizer state and gradient. Can undo one update.
//
// An update reads one pair of (weights, state) buffers and writes the other, so undoing it is a swap without a copy.
// Parameters are stored one after the other in the order given, the state of each together. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/aligned_floats.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class DenseStore {
 public:
  DenseStore(std::vector<ParameterSpec> specs, const Optimizer& optimizer, uint64_t seed);

  size_t size() const { return size_; }
  std::span<float> Weights(size_t parameter) { return Slice(weights_[current_], parameter); }
  std::span<float> Gradient(size_t parameter) { return Slice(gradient_, parameter); }
  std::span<float> Gradients() { return gradient_.First(size_); }
  std::vector<DenseParameter> Parameters();

  // Applies the gradients: takes the values from applied_step() to applied_step() + 1.
  void ApplyUpdate(const Optimizer& optimizer);
  int64_t applied_step() const { return step_; }
  // The oldest step that UndoTo can reach.
  int64_t undo_limit() const { return can_undo_ ? step_ - 1 : step_; }
  absl::Status UndoTo(int64_t step);
  void SetAppliedStep(int64_t step);

 private:
  std::span<float> Slice(const AlignedFloats& buffer, size_t parameter) const {
    return buffer.First(size_).subspan(offsets_[parameter], static_cast<size_t>(specs_[parameter].Size()));
  }
  std::span<float> StateSlice(const AlignedFloats& buffer, size_t parameter) const {
    return buffer.First(size_ * state_floats_)
        .subspan(offsets_[parameter] * state_floats_, static_cast<size_t>(specs_[parameter].Size()) * state_floats_);
  }

  const std::vector<ParameterSpec> specs_;
  std::vector<size_t> offsets_;
  size_t size_ = 0;
  const size_t state_floats_;  // for each weight
  std::array<AlignedFloats, 2> weights_;
  std::array<AlignedFloats, 2> state_;
  AlignedFloats gradient_;
  size_t current_ = 0;
  int64_t step_ = 0;
  bool can_undo_ = false;
};

}  // namespace medley::worker

// The dense parameters of a block in flat buffers for weights, optimizer state and gradient. Keeps the last versions.
//
// The versions are a ring (version_ring.h). Parameters are stored one after the other in the order given, the state of
// each together. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "worker/model/aligned_floats.h"
#include "worker/model/version_ring.h"
#include "worker/params/optimizer.h"
#include "worker/params/parameter_spec.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class DenseStore {
 public:
  // `kept_updates` >= 0: how many updates can be undone. With 0 an update overwrites the values.
  DenseStore(std::vector<ParameterSpec> specs, const Optimizer& optimizer, uint64_t seed, int kept_updates = 1);

  size_t size() const { return size_; }
  // The newest.
  std::span<float> Weights(size_t parameter) { return Slice(Latest().weights, parameter); }
  // Those after step `version`, from undo_limit() to applied_step().
  std::span<const float> WeightsOf(int64_t version, size_t parameter) const;
  std::span<float> Gradient(size_t parameter) { return Slice(gradient_, parameter); }
  std::span<float> Gradients() { return gradient_.First(size_); }
  std::vector<DenseParameter> Parameters();

  // Applies the gradients: takes the values from applied_step() to applied_step() + 1.
  void ApplyUpdate(const Optimizer& optimizer);
  int64_t applied_step() const { return versions_.step(); }
  // The oldest step that UndoTo can reach.
  int64_t undo_limit() const { return size_ == 0 ? 0 : versions_.undo_limit(); }
  // BlockCompute documents these.
  void KeepAgreed();
  void ForgetAgreed() { versions_.ForgetAgreed(); }
  int64_t agreed_step() const { return versions_.agreed_step(); }
  absl::Status UndoTo(int64_t step);
  void SetAppliedStep(int64_t step) { versions_.SetStep(step); }

 private:
  struct Version {
    AlignedFloats weights;
    AlignedFloats state;
  };
  const Version& Latest() const { return versions_.Latest(); }
  void Copy(const Version& from, Version& to) const;
  size_t state_size() const { return size_ * state_floats_; }
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
  VersionRing<Version> versions_;
  AlignedFloats gradient_;
};

}  // namespace medley::worker

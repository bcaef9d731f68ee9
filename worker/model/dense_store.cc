#include "worker/model/dense_store.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {

DenseStore::DenseStore(std::vector<ParameterSpec> specs, const Optimizer& optimizer, uint64_t seed)
    : specs_(std::move(specs)), state_floats_(StateFloats(optimizer.kind)) {
  for (const ParameterSpec& spec : specs_) {
    offsets_.push_back(size_);
    size_ += static_cast<size_t>(spec.Size());
  }
  gradient_.Grow(size_);
  for (size_t i = 0; i < 2; ++i) {
    weights_[i].Grow(size_);
    state_[i].Grow(size_ * state_floats_);
  }
  for (size_t p = 0; p < specs_.size(); ++p) Initialize(specs_[p], seed, Weights(p));
  std::ranges::fill(state_[current_].First(size_ * state_floats_), optimizer.initial_state);
}

std::vector<DenseParameter> DenseStore::Parameters() {
  std::vector<DenseParameter> parameters;
  for (size_t p = 0; p < specs_.size(); ++p) {
    parameters.push_back({specs_[p], Weights(p), StateSlice(state_[current_], p), Gradient(p)});
  }
  return parameters;
}

void DenseStore::ApplyUpdate(const Optimizer& optimizer) {
  const size_t next = 1 - current_;
  for (size_t p = 0; p < specs_.size(); ++p) {
    ApplyTo(optimizer, Weights(p), StateSlice(state_[current_], p), Gradient(p), Slice(weights_[next], p),
            StateSlice(state_[next], p));
  }
  current_ = next;
  can_undo_ = true;
  ++step_;
}

absl::Status DenseStore::UndoTo(int64_t step) {
  if (step == step_) return absl::OkStatus();
  if (step != step_ - 1 || !can_undo_) {
    return base::FailedPrecondition("the parameters are at step {} and can roll back to step {}, not to step {}", step_,
                                    undo_limit(), step);
  }
  current_ = 1 - current_;
  can_undo_ = false;
  --step_;
  return absl::OkStatus();
}

void DenseStore::SetAppliedStep(int64_t step) {
  step_ = step;
  can_undo_ = false;
}

}  // namespace medley::worker

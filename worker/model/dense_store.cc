#include "worker/model/dense_store.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {

DenseStore::DenseStore(std::vector<ParameterSpec> specs, const Optimizer& optimizer, uint64_t seed, int kept_updates)
    : specs_(std::move(specs)),
      state_floats_(StateFloats(optimizer.kind)),
      versions_(static_cast<size_t>(kept_updates) + 1) {
  for (const ParameterSpec& spec : specs_) {
    offsets_.push_back(size_);
    size_ += static_cast<size_t>(spec.Size());
  }
  gradient_.Grow(size_);
  for (Version& version : versions_) {
    version.weights.Grow(size_);
    version.state.Grow(size_ * state_floats_);
  }
  for (size_t p = 0; p < specs_.size(); ++p) {
    if (specs_[p].initializer != Initializer::kStored) Initialize(specs_[p], seed, Weights(p));
  }
  if (optimizer.initial_state != 0)
    std::ranges::fill(Latest().state.First(size_ * state_floats_), optimizer.initial_state);
}

std::span<const float> DenseStore::WeightsOf(int64_t version, size_t parameter) const {
  MEDLEY_CHECK(version >= oldest_ && version <= step_, "this version of the parameters is not kept");
  return Slice(At(version).weights, parameter);
}

std::vector<DenseParameter> DenseStore::Parameters() {
  std::vector<DenseParameter> parameters;
  for (size_t p = 0; p < specs_.size(); ++p) {
    parameters.push_back({specs_[p], Weights(p), StateSlice(Latest().state, p), Gradient(p)});
  }
  return parameters;
}

void DenseStore::ApplyUpdate(const Optimizer& optimizer) {
  const Version& next = At(step_ + 1);
  for (size_t p = 0; p < specs_.size(); ++p) {
    const std::span<const float> weights = Weights(p), state = StateSlice(Latest().state, p), gradient = Gradient(p);
    const std::span<float> new_weights = Slice(next.weights, p), new_state = StateSlice(next.state, p);
    if (specs_[p].role == ParameterRole::kTrained) {
      ApplyTo(optimizer, weights, state, gradient, new_weights, new_state);
      continue;
    }
    const bool changes = specs_[p].role == ParameterRole::kStatistic;
    for (size_t i = 0; i < weights.size(); ++i) new_weights[i] = weights[i] + (changes ? gradient[i] : 0.0F);
    std::ranges::copy(state, new_state.begin());
  }
  ++step_;
  oldest_ = std::max(oldest_, step_ + 1 - static_cast<int64_t>(versions_.size()));
}

absl::Status DenseStore::UndoTo(int64_t step) {
  std::erase_if(agreed_, [&](const Agreed& agreed) { return agreed.step > step; });
  if (!agreed_.empty() && agreed_.back().step == step && step != step_) {
    const Version& to = At(step);
    std::ranges::copy(agreed_.back().values.weights.First(size_), to.weights.data());
    std::ranges::copy(agreed_.back().values.state.First(state_size()), to.state.data());
    step_ = oldest_ = step;
    return absl::OkStatus();
  }
  if (step > step_ || (step < oldest_ && size_ > 0)) {
    return base::FailedPrecondition("the parameters are at step {} and can roll back to step {}, not to step {}", step_,
                                    undo_limit(), step);
  }
  step_ = step;
  return absl::OkStatus();
}

void DenseStore::KeepAgreed() {
  if (!agreed_.empty() && agreed_.back().step == step_) return;
  Agreed next;
  if (agreed_.size() == 2) {  // its memory is used again
    next = std::move(agreed_.front());
    agreed_.pop_front();
  }
  next.step = step_;
  next.values.weights.Grow(size_);
  next.values.state.Grow(state_size());
  std::ranges::copy(Latest().weights.First(size_), next.values.weights.data());
  std::ranges::copy(Latest().state.First(state_size()), next.values.state.data());
  agreed_.push_back(std::move(next));
}

void DenseStore::SetAppliedStep(int64_t step) {
  agreed_.clear();
  if (const size_t from = static_cast<size_t>(step_) % versions_.size(),
      to = static_cast<size_t>(step) % versions_.size();
      from != to) {
    std::swap(versions_[from], versions_[to]);  // the values stay the newest
  }
  step_ = oldest_ = step;
}

}  // namespace medley::worker

#include "worker/model/dense_store.h"

#include <algorithm>

#include "common/base/status.h"
#include "worker/params/initialize.h"

namespace medley::worker {

DenseStore::DenseStore(std::vector<ParameterSpec> specs, const Optimizer& optimizer, uint64_t seed, int kept_updates)
    : specs_(std::move(specs)), state_floats_(StateFloats(optimizer.kind)), versions_(kept_updates) {
  for (const ParameterSpec& spec : specs_) {
    offsets_.push_back(size_);
    size_ += static_cast<size_t>(spec.Size());
  }
  gradient_.Grow(size_);
  for (Version& version : versions_.versions()) {
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
  MEDLEY_CHECK(versions_.Has(version), "this version of the parameters is not kept");
  return Slice(versions_.At(version).weights, parameter);
}

std::vector<DenseParameter> DenseStore::Parameters() {
  std::vector<DenseParameter> parameters;
  for (size_t p = 0; p < specs_.size(); ++p) {
    parameters.push_back({specs_[p], Weights(p), StateSlice(Latest().state, p), Gradient(p)});
  }
  return parameters;
}

void DenseStore::ApplyUpdate(const Optimizer& optimizer) {
  const Version& next = versions_.Next();
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
  versions_.Advance();
}

void DenseStore::Copy(const Version& from, Version& to) const {
  to.weights.Grow(size_);
  to.state.Grow(state_size());
  std::ranges::copy(from.weights.First(size_), to.weights.data());
  std::ranges::copy(from.state.First(state_size()), to.state.data());
}

absl::Status DenseStore::UndoTo(int64_t step) {
  return versions_.UndoTo(step, size_ > 0, [this](const Version& from, Version& to) {
    Copy(from, to);
    return absl::OkStatus();
  });
}

void DenseStore::KeepAgreed() {
  const absl::Status kept = versions_.KeepAgreed([this](const Version& from, Version& to) {
    Copy(from, to);
    return absl::OkStatus();
  });
  MEDLEY_CHECK(kept.ok(), "a copy within the host's memory succeeds");
}

}  // namespace medley::worker

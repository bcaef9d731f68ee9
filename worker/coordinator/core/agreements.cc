#include "worker/coordinator/core/agreements.h"

#include <algorithm>
#include <cmath>

#include "common/model/sync.h"
#include "common/model/synchronisation.h"

namespace medley::worker {
namespace {

constexpr double kFirstFraction = 0.02;  // until the cost of an agreement is known
constexpr double kLeastFraction = 0.01;  // so that it stays known
constexpr double kHysteresis = 0.2;
constexpr double kWeight = 1.0 / 64;     // of a new value in a moving mean
constexpr double kRareWeight = 1.0 / 4;  // of the ratio: agreements may be a hundred steps apart

void Mean(double& mean, double value, double weight = kWeight) {
  mean = mean == 0 ? value : mean + weight * (value - mean);
}

}  // namespace

Agreements::Agreements(const model::Sync& sync) : mode_(sync.mode), target_ratio_(sync.target_ratio) {
  if (mode_ == model::SyncMode::kPercentage) fraction_ = sync.fraction;
  if (mode_ == model::SyncMode::kNone) fraction_ = 0;
  if (mode_ != model::SyncMode::kFlexible) return;
  fraction_ = kFirstFraction;
  credit_ = 1;
}

bool Agreements::Next(bool must) {
  credit_ += fraction_;
  if (!must && credit_ < 1 - 1e-9) return false;
  credit_ = std::max(0.0, credit_ - 1);
  return true;
}

void Agreements::Add(const std::string& member, int64_t step, double compute, double reductions, bool agreed) {
  Mean(compute_, compute);
  if (!agreed) {
    Mean(groups_[member], reductions);
    return;
  }
  if (step < agreement_) return;  // a late report, or a step that is trained again
  const auto group = groups_.find(member);
  const double cost = std::max(0.0, reductions - (group == groups_.end() ? 0 : group->second));
  least_ = step == agreement_ ? std::min(least_, cost) : cost;
  agreement_ = step;
}

void Agreements::Reported(int64_t step) {
  if (agreement_ > before_ && step >= agreement_) Learn();
}

void Agreements::Learn() {
  const auto steps = static_cast<double>(agreement_ - before_);
  const bool first = before_ == 0;  // connections, caches and memory are new in the first step
  before_ = agreement_;
  if (first || !(compute_ > 0)) return;
  const double cost = std::max(least_, last_);
  last_ = least_;
  if (!(cost > 0)) return;
  Mean(ratio_, least_ / (steps * compute_), kRareWeight);
  if (mode_ != model::SyncMode::kFlexible) return;
  const double wanted = std::clamp(target_ratio_ * compute_ / cost, kLeastFraction, 1.0);
  if (std::abs(wanted / fraction_ - 1) > kHysteresis) fraction_ = wanted;
}

}  // namespace medley::worker

#include "worker/coordinator/core/agreements.h"

#include <algorithm>
#include <cmath>

namespace medley::worker {
namespace {

constexpr double kLeastFraction = 0.01;  // so that the cost of an agreement stays known
constexpr double kHysteresis = 0.2;
constexpr double kWeight = 1.0 / 64;     // of a new value in a moving mean
constexpr double kRareWeight = 1.0 / 4;  // agreements may be a hundred steps apart

void Mean(double& mean, double value, double weight = kWeight) {
  mean = mean == 0 ? value : mean + weight * (value - mean);
}

}  // namespace

Agreements::Agreements(const model::Sync& sync) : mode_(sync.mode), target_ratio_(sync.target_ratio) {
  if (mode_ == model::SyncMode::kPercentage) fraction_ = sync.fraction;
  if (mode_ == model::SyncMode::kNone) fraction_ = 0;
}

bool Agreements::Next(bool must) {
  credit_ += fraction_;
  if (!must && credit_ < 1 - 1e-9) return false;
  credit_ = std::max(0.0, credit_ - 1);
  return true;
}

void Agreements::Add(double compute, double synchronisation, bool agreed) {
  Mean(compute_, compute);
  Mean(synchronisation_, synchronisation);
  if (agreed) {
    Mean(agreement_, synchronisation, kRareWeight);
  } else {
    Mean(other_, synchronisation);
  }
  if (mode_ == model::SyncMode::kFlexible) Steer();
}

// In a step, inner groups synchronise for other_ seconds, and an agreement costs agreement_ - other_ more.
void Agreements::Steer() {
  const double cost = agreement_ - other_;
  if (!(cost > 0) || !(compute_ > 0)) return;
  const double wanted = std::clamp((target_ratio_ * compute_ - other_) / cost, kLeastFraction, 1.0);
  if (std::abs(wanted / fraction_ - 1) > kHysteresis) fraction_ = wanted;
}

}  // namespace medley::worker

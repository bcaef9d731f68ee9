#include "worker/coordinator/core/anomaly.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "common/model/synchronisation.h"

namespace medley::worker {
namespace {

constexpr int kLearntWindows = 4;    // until something is usual
constexpr int kComparedWindows = 8;  // that WINDOW compares with

class RunningMeanDetector final : public SlownessDetector {
 public:
  using SlownessDetector::SlownessDetector;

 private:
  void AddRecent(double seconds) override {
    ++seen_;
    recent_ += (seconds - recent_) / static_cast<double>(std::min<int64_t>(seen_, window()));
  }
  double RecentMean() const override { return seen_ < window() ? 0 : recent_; }
  void Learn(double seconds) override {
    ++learnt_;
    const double weight = 1.0 / static_cast<double>(learnt_);
    const double change = seconds - mean_;
    mean_ += weight * change;
    variance_ = (1 - weight) * (variance_ + weight * change * change);
  }
  // A moving mean with the weight 1/w has 1/(2w - 1) of the variance of a step.
  Moments Learnt() const override {
    if (learnt_ < int64_t{kLearntWindows} * window()) return {};
    return {mean_, variance_ / (2 * window() - 1)};
  }
  void Forget() override {
    recent_ = mean_ = variance_ = 0;
    seen_ = learnt_ = 0;
  }

  double recent_ = 0, mean_ = 0, variance_ = 0;
  int64_t seen_ = 0, learnt_ = 0;
};

// The last steps, and the sums over them. All have the same order of magnitude, so the sums stay exact enough.
class SlidingWindow {
 public:
  void Add(double value, size_t most) {
    values_.push_back(value);
    sum_ += value;
    squares_ += value * value;
    if (values_.size() <= most) return;
    sum_ -= values_.front();
    squares_ -= values_.front() * values_.front();
    values_.pop_front();
  }
  size_t size() const { return values_.size(); }
  double mean() const { return sum_ / static_cast<double>(values_.size()); }
  double variance() const { return std::max(0.0, squares_ / static_cast<double>(values_.size()) - mean() * mean()); }

 private:
  std::deque<double> values_;
  double sum_ = 0, squares_ = 0;
};

class WindowDetector final : public SlownessDetector {
 public:
  using SlownessDetector::SlownessDetector;

 private:
  size_t steps() const { return static_cast<size_t>(window()); }
  void AddRecent(double seconds) override { last_.Add(seconds, steps()); }
  double RecentMean() const override { return last_.size() < steps() ? 0 : last_.mean(); }
  void Learn(double seconds) override { before_.Add(seconds, kComparedWindows * steps()); }
  Moments Learnt() const override {
    if (before_.size() < kLearntWindows * steps()) return {};
    return {before_.mean(), before_.variance() / window()};
  }
  void Forget() override { last_ = before_ = {}; }

  SlidingWindow last_, before_;
};

}  // namespace

SlownessDetector::SlownessDetector(const AnomalyPolicy& policy) : policy_(policy) {}

void SlownessDetector::Add(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  if (++steps_ <= window()) return;
  AddRecent(seconds);
  const bool usual = !slow();
  last_.push_back({seconds, usual});
  if (last_.size() <= static_cast<size_t>(window())) return;
  // Nobody knows at the first slow steps that they are slow.
  if (last_.front().usual && usual) Learn(last_.front().seconds);
  last_.pop_front();
}

void SlownessDetector::Restart(double work) {
  if (const Moments learnt = Learnt(); learnt.mean > 0 && (bound_.mean == 0 || learnt.mean < Bound().mean)) {
    bound_ = learnt;
    scale_ = 1;
  }
  scale_ *= work;
  steps_ = 0;
  last_.clear();
  Forget();
}

void SlownessDetector::Restore(double usual) { bound_ = {usual, 0}; }

SlownessDetector::Moments SlownessDetector::Bound() const {
  const double factor = std::max(1.0, scale_);
  return {bound_.mean * factor, bound_.variance * factor * factor};
}

SlownessDetector::Moments SlownessDetector::Known() const {
  const Moments learnt = Learnt(), bound = Bound();
  if (learnt.mean == 0) return bound;
  if (bound.mean == 0) return learnt;
  // Whoever is slow from the beginning of a generation must not take that for usual.
  return learnt.mean < bound.mean ? learnt : bound;
}

double SlownessDetector::recent() const { return RecentMean(); }

bool SlownessDetector::slow() const {
  const Moments known = Known();
  const double mean = RecentMean();
  if (known.mean == 0 || mean == 0) return false;
  return mean > kLeastSlowness * known.mean && mean - known.mean > policy_.threshold * std::sqrt(known.variance);
}

std::unique_ptr<SlownessDetector> MakeDetector(const AnomalyPolicy& policy) {
  if (policy.detector == model::AnomalyDetector::kWindow) return std::make_unique<WindowDetector>(policy);
  return std::make_unique<RunningMeanDetector>(policy);
}

}  // namespace medley::worker

#include "worker/agent/run_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace medley::worker {

void RunProgress::Report(const model::StepReport& report, base::SteadyTime now) {
  if (report.step <= reached_) {
    if (report.step < reached_) ++backwards_;
    if (report.step == reached_ && report.loss) losses_.try_emplace(report.step, *report.loss);
    return;
  }
  now = std::max(now, moved_at_);
  // How many steps the first report is about is not known: a program that continues begins anywhere.
  if (reached_ > 0) {
    const int64_t steps = report.step - reached_;
    widest_ = std::max(widest_, steps);
    seconds_.push_back(base::ToSeconds(now - moved_at_) / static_cast<double>(steps));
    if (seconds_.size() > kLastSteps) seconds_.pop_front();
  }
  if (reached_ == 0) first_ = report.step;
  reached_ = report.step;
  moved_at_ = now;
  if (!report.loss) return;
  losses_[report.step] = *report.loss;
  if (losses_.size() > kMostLosses) losses_.erase(losses_.begin());
}

std::optional<int64_t> RunProgress::ResumedFrom(int64_t widest) const {
  if (reached_ == 0) return std::nullopt;
  return std::max<int64_t>(0, first_ - std::max({int64_t{1}, widest_, widest}));
}

std::optional<double> RunProgress::TakeLoss(int64_t step) {
  losses_.erase(losses_.begin(), losses_.lower_bound(step));
  const auto found = losses_.find(step);
  return found == losses_.end() ? std::nullopt : std::optional(found->second);
}

double RunProgress::MedianSeconds() const {
  if (seconds_.empty()) return 0;
  std::vector<double> sorted(seconds_.begin(), seconds_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

double RunProgress::Spread() const {
  if (seconds_.size() < 2) return 0;
  const auto count = static_cast<double>(seconds_.size());
  double sum = 0, squares = 0;
  for (const double each : seconds_) sum += each;
  const double mean = sum / count;
  for (const double each : seconds_) squares += (each - mean) * (each - mean);
  return mean > 0 ? std::sqrt(squares / (count - 1)) / mean : 0;
}

double RunProgress::Patience() const {
  if (hang_seconds_ > 0) return hang_seconds_;
  if (seconds_.empty()) return kStartPatience;
  return std::max(least_patience_, 10 * MedianSeconds());
}

std::string RunProgress::Hang(base::SteadyTime now) const {
  const double quiet = base::ToSeconds(now - moved_at_);
  if (quiet <= Patience()) return "";
  if (reached_ == 0) return fmt::format("the program has reported no step for {:.0f} s since its start", quiet);
  return fmt::format("the program has reported no new step for {:.0f} s; the last one is {}", quiet, reached_);
}

}  // namespace medley::worker

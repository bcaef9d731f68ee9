// What a program has reported since it was started, and whether it still makes progress. Pure, not thread-safe.
//
//   started --report--> steps --report--> steps ... ; without a report for Patience(): it hangs
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/model/progress_pattern.h"

namespace medley::worker {

class RunProgress {
 public:
  // `hang_seconds`: the longest time without a new step; 0: ten times the median step, and at least `least_patience`.
  RunProgress(double hang_seconds, double least_patience, base::SteadyTime now)
      : hang_seconds_(hang_seconds), least_patience_(least_patience), moved_at_(now) {}
  RunProgress(double hang_seconds, base::SteadyTime now) : RunProgress(hang_seconds, kLeastPatience, now) {}

  static constexpr double kLeastPatience = 60;      // seconds
  static constexpr double kBufferedPatience = 600;  // seconds, where reports come late, as event files do
  static constexpr double kStartPatience = 600;     // seconds before the first step, in which programs load their data

  void Began(base::SteadyTime now) { moved_at_ = std::max(moved_at_, now); }  // it was not to report before
  // A step that is not above those before is counted in `backwards` and changes nothing else, but for the first loss of
  // the last step, which may be in a report of its own. `now` may be earlier than that of the report before.
  void Report(const model::StepReport& report, base::SteadyTime now);
  int64_t reached() const { return reached_; }  // 0: nothing was reported
  // The earliest step after which the program can have continued: it may report only each so many steps, of which
  // `widest` is known. nullopt: nothing was reported.
  std::optional<int64_t> ResumedFrom(int64_t widest) const;
  int64_t widest() const { return widest_; }  // the most steps from one report to the next; 0: fewer than two reports
  int64_t backwards() const { return backwards_; }
  // The loss that was reported for the step; nullopt: none. Forgets those of earlier steps.
  std::optional<double> TakeLoss(int64_t step);
  // Whether a program that has ended well may have finished `steps`: it may report only every so many of them.
  bool MayHaveFinished(int64_t steps) const { return reached_ > 0 && reached_ + widest_ >= steps; }
  // Median of the last steps; 0: fewer than two reports.
  double MedianSeconds() const;
  // Standard deviation over mean of the last steps; 0: fewer than two of them.
  double Spread() const;
  int64_t measured() const { return static_cast<int64_t>(seconds_.size()); }
  // Why the program hangs; empty: it does not.
  std::string Hang(base::SteadyTime now) const;

 private:
  static constexpr size_t kLastSteps = 101;
  static constexpr size_t kMostLosses = 1024;
  double Patience() const;

  const double hang_seconds_;
  const double least_patience_;
  base::SteadyTime moved_at_;
  int64_t first_ = 0;  // step of the first report
  int64_t reached_ = 0;
  int64_t widest_ = 0;
  int64_t backwards_ = 0;
  std::deque<double> seconds_;  // of a step, for each of the last reports but the first
  std::map<int64_t, double> losses_;
};

}  // namespace medley::worker

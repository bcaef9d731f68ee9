// The time limit and the cancellation of a planner, and who listens to what it finds meanwhile.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <stop_token>
#include <utility>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "scheduler-service/devices/figures.h"

namespace medley::sched {

// Immutable and thread-safe, if the listener is. The clock must outlive it.
class Budget {
 public:
  // Called in the thread of Solve with each plan that is the best so far of a planner, and with what the planner knows
  // of it. A planner that runs others may report plans that are not better than earlier ones.
  using OnBetter = std::function<void(const model::ExecutionPlan& plan, const Figures& figures)>;

  Budget(const base::Clock& clock, base::SteadyTime deadline, std::stop_token stop, OnBetter on_better = {})
      : clock_(clock), deadline_(deadline), stop_(std::move(stop)), on_better_(std::move(on_better)) {}

  // A budget that ends after `fraction` of the remaining time.
  Budget Share(double fraction) const {
    if (deadline_ == base::SteadyTime::max()) return *this;
    const base::SteadyTime now = clock_.Steady();
    const double left = base::ToSeconds(deadline_ - now);
    return {clock_, now + base::FromSeconds(std::max(left * fraction, 0.0)), stop_, on_better_, early_, found_};
  }
  // The same budget, which ends after `fraction` of the remaining time if found() is false then. Copies share `found`,
  // which must outlive them.
  Budget ShareUnless(double fraction, const bool& found) const {
    Budget out = Share(fraction);
    return {clock_, deadline_, stop_, on_better_, out.deadline_, &found};
  }
  // The same, with another listener.
  Budget Heard(OnBetter on_better) const { return {clock_, deadline_, stop_, std::move(on_better), early_, found_}; }
  // For a search that serves another one: nobody listens.
  Budget Quiet() const { return {clock_, deadline_, stop_, {}, early_, found_}; }
  // The same, but at most `seconds` from now.
  Budget QuietWithin(double seconds) const {
    const base::SteadyTime end = clock_.Steady() + base::FromSeconds(std::min(seconds, 1e6));
    return {clock_, std::min(deadline_, end), stop_, {}, early_, found_};
  }

  // Until the deadline, in seconds; at least 0, and infinite without a deadline.
  double RemainingSeconds() const {
    if (deadline_ == base::SteadyTime::max()) return std::numeric_limits<double>::infinity();
    return std::max(base::ToSeconds(deadline_ - clock_.Steady()), 0.0);
  }
  bool Spent() const {
    const base::SteadyTime now = clock_.Steady();
    return stop_.stop_requested() || now >= deadline_ || (found_ != nullptr && !*found_ && now >= early_);
  }
  bool listened() const { return static_cast<bool>(on_better_); }
  void Report(const model::ExecutionPlan& plan, const Figures& figures) const {
    if (on_better_) on_better_(plan, figures);
  }
  const base::Clock& clock() const { return clock_; }
  const std::stop_token& stop() const { return stop_; }

 private:
  Budget(const base::Clock& clock, base::SteadyTime deadline, std::stop_token stop, OnBetter on_better,
         base::SteadyTime early, const bool* found)
      : clock_(clock),
        deadline_(deadline),
        stop_(std::move(stop)),
        on_better_(std::move(on_better)),
        early_(early),
        found_(found) {}

  const base::Clock& clock_;
  const base::SteadyTime deadline_;
  const std::stop_token stop_;
  const OnBetter on_better_;
  const base::SteadyTime early_ = {};  // the deadline while *found_ is false
  const bool* const found_ = nullptr;
};

}  // namespace medley::sched

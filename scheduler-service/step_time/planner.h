// The interface of planners that minimise the seconds of a step on a fixed set of devices.
//
// A planner is const and thread-safe. It does no I/O and uses only the clock that it is given. The same (problem, seed)
// gives the same result unless the time runs out.
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "scheduler-service/options/option.h"
#include "scheduler-service/options/takes.h"
#include "scheduler-service/step_time/problem.h"

namespace medley::sched {

// The limits of a search, and who listens to what it finds meanwhile. The clock must outlive it.
class SearchLimits {
 public:
  // Called in the thread of Solve with each plan that is the best so far, and its seconds.
  using OnBetter = std::function<void(const model::ExecutionPlan& plan, double seconds)>;

  // Seconds of a step of a plan on real processes. Called in the thread of Solve, for plans that the simulator accepts.
  using Measure = std::function<absl::StatusOr<double>(const model::ExecutionPlan& plan)>;

  // With `measure`, what planners time as a whole plan is measured instead of simulated; closed forms stay as they are.
  SearchLimits(const base::Clock& clock, base::SteadyTime deadline, std::stop_token stop, OnBetter on_better = {},
               Measure measure = {})
      : clock_(clock),
        deadline_(deadline),
        stop_(std::move(stop)),
        on_better_(std::move(on_better)),
        measure_(std::move(measure)) {}

  // Until the deadline, in seconds; at least 0, and kForever without a deadline.
  double RemainingSeconds() const {
    if (deadline_ == base::SteadyTime::max()) return kForever;
    return std::max(base::ToSeconds(deadline_ - clock_.Steady()), 0.0);
  }
  // The same, but at most `seconds` from now, and nobody listens.
  SearchLimits Within(double seconds) const {
    const base::SteadyTime end = clock_.Steady() + base::FromSeconds(std::min(seconds, 1e6));
    return {clock_, std::min(deadline_, end), stop_, {}, measure_};
  }
  bool Spent() const { return stop_.stop_requested() || clock_.Steady() >= deadline_; }
  const std::stop_token& stop() const { return stop_; }
  const Measure& measure() const { return measure_; }  // empty: the simulator
  void Report(const model::ExecutionPlan& plan, double seconds) const {
    if (on_better_) on_better_(plan, seconds);
  }

 private:
  const base::Clock& clock_;
  const base::SteadyTime deadline_;
  const std::stop_token stop_;
  const OnBetter on_better_;
  const Measure measure_;
};

struct StepTimeSolution {
  std::optional<model::ExecutionPlan> best;  // nullopt: no plan fits; `notes` say why
  double seconds = 0;                        // of a step of `best`, by the simulator
  double model_seconds = 0;                  // by the planner's closed form; 0: it has none
  double lower_bound_seconds = 0;            // proven; of the closed form, or without one of every plan; 0: not proven
  int64_t simulated = 0;                     // plans that were timed
  int64_t repaired = 0;                      // plans that were illegal, so the planner changed them
  bool complete = true;                      // false: the limits ended the search
  std::vector<model::StepTimePlan::Alternative> alternatives;
  std::string explanation;         // one fact a line
  std::vector<std::string> notes;  // sentences
  std::string planner;             // that made the plan, if it is not the requested one
};

class StepTimePlanner {
 public:
  virtual ~StepTimePlanner() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual bool proves_optimality() const { return false; }
  virtual Takes takes() const { return {.graphs = true}; }
  // What planner.options of a request may have. Solve is called with values that CheckOptions accepts.
  virtual Options options() const { return {}; }
  // Errors: InvalidArgument for a problem that this planner cannot handle (too many devices, ...).
  virtual absl::StatusOr<StepTimeSolution> Solve(const StepTimeProblem& problem, uint64_t seed,
                                                 const SearchLimits& limits) const = 0;
};

// Planners by name.
class StepTimeRegistry {
 public:
  // The name must be unique.
  void Add(std::unique_ptr<StepTimePlanner> planner);
  // Null for an unknown name.
  const StepTimePlanner* Find(std::string_view name) const;
  const std::vector<std::unique_ptr<StepTimePlanner>>& planners() const { return planners_; }

 private:
  std::vector<std::unique_ptr<StepTimePlanner>> planners_;
};

}  // namespace medley::sched

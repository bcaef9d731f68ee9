// The interface of all planners, and the registry that finds them by name.
//
// A planner is const and thread-safe. The planners of this folder do no I/O and use only the clock that they are given.
// The same (problem, seed) gives the same result unless the time runs out, or the planner is not deterministic().
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/options/option.h"
#include "scheduler-service/options/takes.h"
#include "scheduler-service/provision/exact.h"
#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

// The time limit for finding the reasons why no plan exists, in seconds.
inline constexpr double kReasonSeconds = 2;

// Called with a plan that is the best so far of a planner, in the thread of Solve. A planner that runs others may
// report plans that are not better than earlier ones.
using OnIncumbent = std::function<void(const Provisioned& plan)>;

// The time limit and the cancellation of a planner, and who listens to what it finds meanwhile. The clock must outlive
// it.
class Budget {
 public:
  Budget(const base::Clock& clock, base::SteadyTime deadline, std::stop_token stop, OnIncumbent on_incumbent = {})
      : clock_(clock), deadline_(deadline), stop_(std::move(stop)), on_incumbent_(std::move(on_incumbent)) {}
  // A budget that ends after `fraction` of the remaining time.
  Budget Share(double fraction) const {
    if (deadline_ == base::SteadyTime::max()) return *this;
    const base::SteadyTime now = clock_.Steady();
    const double left = base::ToSeconds(deadline_ - now);
    return {clock_, now + base::FromSeconds(std::max(left * fraction, 0.0)), stop_, on_incumbent_};
  }
  // The same without a listener: for a search that serves another one.
  Budget Quiet() const { return {clock_, deadline_, stop_}; }
  // Until the deadline, in seconds; at least 0, and infinite without a deadline.
  double RemainingSeconds() const {
    if (deadline_ == base::SteadyTime::max()) return kInfinity;
    return std::max(base::ToSeconds(deadline_ - clock_.Steady()), 0.0);
  }
  bool Spent() const { return stop_.stop_requested() || clock_.Steady() >= deadline_; }
  void Report(const Provisioned& plan) const {
    if (on_incumbent_) on_incumbent_(plan);
  }
  const base::Clock& clock() const { return clock_; }
  const std::stop_token& stop() const { return stop_; }

 private:
  const base::Clock& clock_;
  const base::SteadyTime deadline_;
  const std::stop_token stop_;
  const OnIncumbent on_incumbent_;
};

// The result of a planner.
struct Solution {
  // The best plan found. If nullopt and `complete`, a planner that proves optimality has proven the problem infeasible.
  std::optional<Provisioned> best;
  std::optional<double> lower_bound;  // proven lower bound of the cost of all feasible plans, in USD
  bool complete = true;               // false: the budget ended the search
  // The planner that made the plan, if it is not the requested one. Valid as long as the planners.
  std::string_view planner;
  std::string policy;              // the trained policy as bytes, if the request asks for it
  std::vector<std::string> notes;  // sentences for the answer, for example why another planner made the plan
};

class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual bool proves_optimality() const { return false; }
  virtual Takes takes() const { return {.tables = true}; }
  // What planner.options of a request may have. Solve is called with values that CheckOptions accepts.
  virtual Options options() const { return {}; }
  // False if the same (problem, seed) may give another result although the time did not run out.
  virtual bool deterministic() const { return true; }
  // Planners that search report each plan that is their best so far to the budget. Errors: InvalidArgument for a
  // problem that this planner cannot handle (too large for brute force, no CPU type, ...).
  virtual absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const = 0;
};

// What plans one name makes; at least one of both.
struct NamedPlanner {
  std::string_view name;
  const Planner* cost = nullptr;               // with stages of some units
  const StepTimePlanner* step_time = nullptr;  // on the devices of a cluster (PlanRequest::on_devices)
};

// Planners by name. A name may make both kinds of plans; a request chooses by PlanRequest::on_devices.
class Registry {
 public:
  // The name must be unique for its kind of plans.
  void Add(std::unique_ptr<Planner> planner);
  void Add(std::unique_ptr<StepTimePlanner> planner);
  // Each name once, in the order of Add.
  std::vector<NamedPlanner> List() const;
  // Errors: InvalidArgument where no planner of this name makes such plans: what it makes instead, or which name is
  // close to it. `field`: where the name is.
  absl::Status CheckName(std::string_view name, bool on_devices, std::string_view field = "planner.name") const;

  // For one kind. Null for an unknown name.
  const Planner* Find(std::string_view name) const;
  const std::vector<std::unique_ptr<Planner>>& planners() const { return planners_; }
  const StepTimeRegistry& step_time() const { return step_time_; }

 private:
  std::vector<std::unique_ptr<Planner>> planners_;
  StepTimeRegistry step_time_;
  std::vector<std::string> names_;
};

// A registry of all planners that need no neural network library: those in this folder, `hierarchy`, and pipelines.
Registry BuiltinPlanners();

}  // namespace medley::sched

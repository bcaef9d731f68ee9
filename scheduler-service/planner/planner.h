// One interface for every planner, and the registry that finds them by name.
//
// A planner is const and thread-safe; it does no I/O and reads no clock but the one it is given. The same (problem,
// seed) gives the same answer unless time runs out.
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {

// The longest time spent on finding out why no plan exists.
inline constexpr double kReasonSeconds = 2;

// A deadline and a stop token. Refers to a clock that outlives it.
class Budget {
 public:
  Budget(const base::Clock& clock, base::SteadyTime deadline, std::stop_token stop)
      : clock_(clock), deadline_(deadline), stop_(std::move(stop)) {}
  // The part of it that ends after `fraction` of the time that is left.
  Budget Share(double fraction) const {
    if (deadline_ == base::SteadyTime::max()) return *this;
    const base::SteadyTime now = clock_.Steady();
    const double left = base::ToSeconds(deadline_ - now);
    return {clock_, now + base::FromSeconds(std::max(left * fraction, 0.0)), stop_};
  }
  bool Spent() const { return stop_.stop_requested() || clock_.Steady() >= deadline_; }
  const base::Clock& clock() const { return clock_; }

 private:
  const base::Clock& clock_;
  const base::SteadyTime deadline_;
  const std::stop_token stop_;
};

// What a planner found.
struct Solution {
  std::optional<Provisioned> best;  // none: nothing found (proven infeasible when `complete`)
  // USD that no feasible plan comes below, where proven.
  std::optional<double> lower_bound;
  bool complete = true;      // false: ended by the budget, `best` is the incumbent
  std::string_view planner;  // that made the plan, where it is not the one asked; a literal
  std::string policy;        // of a neural planner that was asked to return it; bytes
};

class Planner {
 public:
  virtual ~Planner() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual bool proves_optimality() const { return false; }
  // Errors: InvalidArgument for a problem that this planner cannot take (too large for brute force, no CPU type, ...).
  virtual absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const = 0;
};

class Registry {
 public:
  // The name must not be taken.
  void Add(std::unique_ptr<Planner> planner);
  // Null when unknown.
  const Planner* Find(std::string_view name) const;
  const std::vector<std::unique_ptr<Planner>>& planners() const { return planners_; }

 private:
  std::vector<std::unique_ptr<Planner>> planners_;
};

// Every planner of this folder.
Registry BuiltinPlanners();

}  // namespace medley::sched

// Evaluates schedules for planners that search by evaluating many of them. The units of a schedule are optimal, results
// are cached, and infeasible schedules get a cost that grows with the violation, so that a search moves towards
// feasible ones. A run of layers of one type is one stage; where that costs nearly as little as the best schedule, or
// nothing is feasible yet, the run's cheapest cuts are searched too (with a budget only).
//
// Not thread-safe. The problem must outlive it, and the budget, if any, to which it reports each cheapest plan so far.
// The cache is bounded: it is cleared when it is full.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/stage_planner.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {

class ScheduleCost {
 public:
  explicit ScheduleCost(const Problem& problem, const Budget* budget = nullptr) : problem_(problem), budget_(budget) {}

  // The natural logarithm of the cost in USD. For an infeasible schedule: the logarithm of its cost without
  // constraints, plus kPenalty, plus for each violated constraint the logarithm of the ratio by which it is exceeded.
  // `schedule` has a type for each layer, on which the layer must have a profile.
  double Of(const std::vector<int>& schedule);

  // The cheapest feasible schedule that was evaluated, and its plan.
  const std::optional<Provisioned>& best() const { return best_; }
  const std::vector<int>& best_schedule() const { return best_schedule_; }
  // The logarithm of its cost; infinite if there is none.
  double best_value() const;
  // The number of schedules that were evaluated and not found in the cache.
  int64_t provisioned() const { return provisioned_; }

  static constexpr double kPenalty = 0.5;

 private:
  double Grade(const std::vector<int>& schedule) const;
  bool WorthCutting(const std::vector<StageChoice>& stages, const std::optional<Provisioned>& uncut);

  const Problem& problem_;
  const Budget* budget_;
  std::unordered_map<uint64_t, double> known_;  // by hash
  std::optional<Provisioned> best_;
  std::vector<int> best_schedule_;
  int64_t provisioned_ = 0;
  int cut_infeasible_ = 0;  // schedules that were cut although a stage for each run is infeasible
  int64_t cut_effort_ = 0;  // possible stages of the schedules that were cut
};

}  // namespace medley::sched

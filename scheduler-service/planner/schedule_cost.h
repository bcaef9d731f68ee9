// What a schedule costs, for planners that search by trying schedules: provisioned exactly, remembered, and graded when
// it is infeasible, so that a search can tell how far from feasible it is.
//
// Not thread-safe; one problem, which outlives it. Memory is bounded: past a number of schedules the memory is emptied.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {

class ScheduleCost {
 public:
  explicit ScheduleCost(const Problem& problem) : problem_(problem) {}

  // The natural logarithm of the cost in USD. For an infeasible schedule the logarithm of what it would cost were its
  // constraints lifted, plus kPenalty, plus the logarithms of how many times over each one is. `schedule`: a type for
  // each layer that it is profiled on.
  double Of(const std::vector<int>& schedule);

  // The cheapest feasible schedule asked for so far, and its plan.
  const std::optional<Provisioned>& best() const { return best_; }
  const std::vector<int>& best_schedule() const { return best_schedule_; }
  // The logarithm of its cost; infinite without one.
  double best_value() const;
  // Schedules provisioned, without those remembered.
  int64_t provisioned() const { return provisioned_; }

  static constexpr double kPenalty = 0.5;

 private:
  double Grade(const std::vector<int>& schedule) const;

  const Problem& problem_;
  std::unordered_map<uint64_t, double> known_;  // by hash
  std::optional<Provisioned> best_;
  std::vector<int> best_schedule_;
  int64_t provisioned_ = 0;
};

}  // namespace medley::sched

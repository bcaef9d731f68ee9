// What runs of one model cost, by schedule, and what that says of schedules that never ran.
//
// A schedule's cost is a moving mean of its measurements. How far reality is from the cost model is believed to depend
// on the types: log(measured / modelled) = sum over types of share_t * w_t, share_t being the part of the modelled work
// that is on type t; w by ridge regression. Not thread-safe. Bounded: the schedule measured longest ago is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// A schedule that ran. Types are numbered by who keeps it.
struct MeasuredSchedule {
  std::vector<int> schedule;
  double log_cost = 0;         // USD a sample
  double log_probability = 0;  // under the policy of the time
  int64_t observed = 0;        // number of the last observation
  bool operator==(const MeasuredSchedule&) const = default;
};

class ReplayBuffer {
 public:
  explicit ReplayBuffer(size_t most) : most_(most) {}

  // Adds a measurement; returns its entry's place.
  void Add(std::vector<int> schedule, double log_cost, double log_probability, int64_t number);
  const std::vector<MeasuredSchedule>& all() const { return all_; }
  void set_all(std::vector<MeasuredSchedule> all) { all_ = std::move(all); }
  const MeasuredSchedule* Find(const std::vector<int>& schedule) const;

 private:
  const size_t most_;
  std::vector<MeasuredSchedule> all_;
};

// The part of the work of `schedule` (types of `problem`) on each type, by what one unit costs; sums to 1.
std::vector<double> SharesByType(const Problem& problem, const std::vector<int>& schedule);

// w of rows (shares, log ratio), with weight `ridge` on its squares.
std::vector<double> RidgeWeights(const std::vector<std::vector<double>>& shares, const std::vector<double>& ratios,
                                 double ridge);

}  // namespace medley::sched

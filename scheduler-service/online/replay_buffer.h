// The replay buffer of one model: the schedules that ran, with their measured costs. It also predicts the costs of
// schedules that never ran.
//
// The cost of a schedule is a moving average of its measurements. The error of the cost model is assumed to depend on
// the types: log(measured / modelled) = sum over types t of share_t * w_t, where share_t is the share of the modelled
// cost on type t, and ridge regression finds w. Not thread-safe. The size is bounded: the schedule whose last
// measurement is the oldest is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {

// A schedule that ran. The owner of the buffer defines the numbers of the types.
struct MeasuredSchedule {
  std::vector<int> schedule;
  double log_cost = 0;         // natural logarithm of USD per sample
  double log_probability = 0;  // under the policy at the time of the last measurement
  int64_t observed = 0;        // number of the last observation
  bool operator==(const MeasuredSchedule&) const = default;
};

class ReplayBuffer {
 public:
  explicit ReplayBuffer(size_t most) : most_(most) {}

  // Adds a measurement of `schedule`. `number` is the number of the observation.
  void Add(std::vector<int> schedule, double log_cost, double log_probability, int64_t number);
  const std::vector<MeasuredSchedule>& all() const { return all_; }
  void set_all(std::vector<MeasuredSchedule> all) { all_ = std::move(all); }
  const MeasuredSchedule* Find(const std::vector<int>& schedule) const;

 private:
  const size_t most_;
  std::vector<MeasuredSchedule> all_;
};

// The share of the modelled cost of `schedule` (types of `problem`) on each type, with one unit per stage. The shares
// add up to 1.
std::vector<double> SharesByType(const Problem& problem, const std::vector<int>& schedule);

// Solves the ridge regression ratios = shares * w, with the penalty `ridge` on the squares of w. Row i is shares[i] and
// ratios[i].
std::vector<double> RidgeWeights(const std::vector<std::vector<double>>& shares, const std::vector<double>& ratios,
                                 double ridge);

}  // namespace medley::sched

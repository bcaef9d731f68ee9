// A goal that only a mix of pools reaches cheaply (`mixSavesPercent` of a scenario), so that an example shows on any
// machine what a mix is good for. Pure, but for the planner that it asks.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "common/model/plan_result.h"

namespace medley::cli {

// The planner's answer for a goal in samples/s.
using PlanForGoal = std::function<absl::StatusOr<model::PlanResult>(double samples_per_second)>;

struct MixGoal {
  double samples_per_second = 0;
  std::string why;  // a clause: what it is chosen for
};

// Asks for goals up to `most` samples/s, and returns the middle of the longest range of them for which the best plan
// uses several pools for its layers and costs at least `percent` less than the cheapest plan on a single pool. Ranges
// in which no single pool reaches the goal count only if there is no other. Errors: FailedPrecondition, with what comes
// closest, when there is no such goal; those of `plan`.
absl::StatusOr<MixGoal> FindMixGoal(double most, double percent, const PlanForGoal& plan);

}  // namespace medley::cli

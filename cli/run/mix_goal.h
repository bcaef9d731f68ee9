// A goal that only a mix of pools reaches cheaply (`mixSavesPercent` of a scenario), so that an example shows on any
// machine what a mix is good for. Pure, but for the planner that it asks.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>

#include "common/model/plan_result.h"

namespace medley::cli {

// The planner's answer for a goal in samples/s.
using PlanForGoal = std::function<absl::StatusOr<model::PlanResult>(double samples_per_second)>;

// The prices that a later step of the scenario sets.
struct LaterPrices {
  PlanForGoal plan;
  std::function<double(const model::ProvisionedPlan&)> cost_usd;  // what a plan of now costs then, in USD
};

struct MixGoal {
  double samples_per_second = 0;
  std::string why;     // a clause: what it is chosen for
  bool moves = false;  // at the later prices another plan is much cheaper, so that a job moves to it
};

// Asks for goals up to `most` samples/s, and returns the middle of the longest range of them for which the best plan
// uses several pools for its layers and costs at least `percent` less than the cheapest plan on a single pool. With
// `later`, a goal after which a job moves comes before all others, even if a mix saves less there or nothing; after
// that one that a single pool reaches. Errors: FailedPrecondition, with what comes closest, when there is neither such
// a saving nor a move; those of `plan` and `later`.
absl::StatusOr<MixGoal> FindMixGoal(double most, double percent, const PlanForGoal& plan,
                                    const std::optional<LaterPrices>& later = std::nullopt);

}  // namespace medley::cli

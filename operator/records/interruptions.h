// What interruptions of spot machines add to the price of a plan. Pure.
//
// A unit that is lost is paid while its successor starts and trains nothing; a program also trains again what it did
// since it was last saved. So a planner that looks for the least USD counts a unit of such a pool at its price times
// 1 + the part of its time that is expected to be lost (operator/api/pool_lifetimes.h). A program stops as a whole,
// so each of its units loses that for each of them (PlanProgram). What is paid, shown and bounded by the hour is the
// price itself: `WithPaidPrices` puts it back into the answer.
#pragma once

#include <vector>

#include "common/model/forward.h"
#include "operator/records/plan_request.h"
#include "operator/records/program_plan.h"

namespace medley::ops {

// As a part of the paid time of a unit; 0 for a pool that is not of spot machines, or of which nothing speaks for
// losses.
double LostShareOf(const TrainingJob& job, const ResourcePool& pool);

// The same by pool. Empty where the goal is not USD, and where USD per hour are bounded: a bound holds for what is
// paid.
LostShares LostSharesOf(const TrainingJob& job, const std::vector<PoolOffer>& offers);

// Raises the prices of the resources by it, in the order of `offers`, but not for a program. Resources without a
// price stay as they are.
void AddInterruptions(const TrainingJob& job, const std::vector<PoolOffer>& offers, model::PlanRequest& request);

// The answer to a request with AddInterruptions (that of a program stays as it is): prices and USD per hour are those
// that are paid; USD in all are with what interruptions are expected to cost.
model::PlanResult WithPaidPrices(const TrainingJob& job, const std::vector<PoolOffer>& offers,
                                 const model::PlanRequest& request, model::PlanResult result);

}  // namespace medley::ops

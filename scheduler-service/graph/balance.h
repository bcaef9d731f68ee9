// Shares of replicas by what each device computes, instead of HeteroG's whole counts of replicas ("2 on a V100 against
// 1"): a device of 1.6 times the power gets 1.6 times the samples, and one that has operations of its own gets fewer.
#pragma once

#include <vector>

#include "scheduler-service/graph/search.h"

namespace medley::sched {

// By device: samples of a micro-batch, at least 1, so that the device that computes longest in a step computes as short
// as whole samples allow. The replicated groups of `actions` have these shares, whatever their action says; `alone`:
// what a device has alone counts too. Of batches above 4,096 samples, parts of that many. Empty: fewer samples than
// devices, or nothing is replicated. Pure.
std::vector<int> BalancedCounts(const DeviceProblem& problem, const OperationGroups& groups,
                                const std::vector<int>& actions, bool alone = true);

// The same actions with replicas in proportion, whose gradients are added as before. Pure.
std::vector<int> InProportion(const DeviceProblem& problem, std::vector<int> actions);

// Times the best strategy so far and copies of the whole model with balanced shares, in all sizes of buckets and two
// orders. What devices have alone is counted or not: where the others wait for it, more samples for them make the path
// through it longer. At most kMostBalanceSimulations, which the timer must allow.
inline constexpr int kMostBalanceSimulations = 40;
void BalanceShares(const GraphQuestion& q);

}  // namespace medley::sched

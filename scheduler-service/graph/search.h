// The search of strategies, and its steps, which other searches use as well.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/graph/timer.h"
#include "scheduler-service/planning/overlap.h"

namespace medley::sched {

struct GraphQuestion {
  const DeviceProblem& problem;
  const OperationGroups& groups;
  GraphTimer& timer;
  base::Rng& rng;
  // What the searches may decide; empty: all. A search with a part of the actions needs a strategy that fits.
  std::vector<int> actions = {};
  std::vector<OrderBy> orders = {};
  // Shares of replicas by what devices compute are decisions of the search, too (balance.h). False: the paper's whole
  // counts of replicas only.
  bool balances = false;
};

// The whole model by one action.
GraphStrategy Uniform(const GraphQuestion& q, int action, int64_t bucket_bytes, OrderBy order);

// One of the actions that the search may choose, evenly.
int AnyAction(const GraphQuestion& q);
// A run [first, second) of at most `most` neighbouring groups, shorter ones more often.
std::pair<size_t, size_t> DrawRun(const GraphQuestion& q, size_t most);
// `strategy` with this action for a run of groups.
GraphStrategy Changed(GraphStrategy strategy, std::pair<size_t, size_t> run, int action);
// Where nothing simple fits: draws runs of groups on one device each, with a few changes, until something fits. A small
// question has fewer such strategies than simulations, so the draws are counted too. False: nothing fitted.
bool FindAny(const GraphQuestion& q);

// Times the four ways to replicate the model, with each size of buckets and both orders, and each kind of device alone.
void TryBaselines(const GraphQuestion& q);

// From the best strategy so far, or where none fits, from runs of groups on one device each: single groups and runs of
// neighbouring groups change their action or only the kind of their shares, runs around the largest parameters move to
// one device, all groups of one action take another, the size of buckets and the order change, shares are balanced and
// moved between devices, while that shortens the step. What a lower bound of whole replicas excludes is not simulated
// (strategy_bound.h). Then it begins again from a disturbed best one, or from a random one.
void SearchGraph(const GraphQuestion& q);

// A strategy with reductions during the next step (planning/overlap.h), in its best size of buckets.
inline constexpr int kMostOverlapSimulations = 40;
struct OverlappedStrategy {
  GraphStrategy strategy;
  OverlappedPlan found;
};
// The fastest of the best strategy so far and of copies of the whole model, of which those that communicate most may
// gain most. At most kMostOverlapSimulations, which do not count as the timer's. nullopt: none takes at most `below`
// seconds, or the limits are spent. Errors: Cancelled; those of BuildGraphPlan.
absl::StatusOr<std::optional<OverlappedStrategy>> OverlapBest(const GraphQuestion& q, double below,
                                                              const Budget& limits, Overlapping& overlapping);

}  // namespace medley::sched

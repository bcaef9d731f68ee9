// Searches of strategies on equal numbers of simulations: ours and those that it is compared with.
#pragma once

#include <optional>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/graph/timer.h"
#include "scheduler-service/step_time/overlap.h"

namespace medley::sched {

struct GraphQuestion {
  const StepTimeProblem& problem;
  const OperationGroups& groups;
  GraphTimer& timer;
  base::Rng& rng;
  // What the searches may decide; empty: all. A search with a part of the actions needs a strategy that fits.
  std::vector<int> actions = {};
  std::vector<OrderBy> orders = {};
};

// The whole model by one action.
GraphStrategy Uniform(const GraphQuestion& q, int action, int64_t bucket_bytes, OrderBy order);

// Times the four ways to replicate the model, with each size of buckets and both orders, and each kind of device alone.
void TryBaselines(const GraphQuestion& q);

// From the best strategy so far, or where none fits, from runs of groups on one device each: single groups and runs of
// neighbouring groups change their action or only the kind of their shares, runs around the largest parameters move to
// one device, all groups of one action take another, the size of buckets and the order change, while that shortens the
// step. What a lower bound excludes is not simulated (strategy_bound.h). Then it begins
// again from a disturbed best one, or from a random one.
void SearchGraph(const GraphQuestion& q);

// A strategy with reductions during the next step (step_time/overlap.h), in its best size of buckets.
inline constexpr int kMostOverlapSimulations = 40;
struct OverlappedStrategy {
  GraphStrategy strategy;
  OverlappedPlan found;
};
// The fastest of the best strategy so far and of copies of the whole model, of which those that communicate most may
// gain most. At most kMostOverlapSimulations, which do not count as the timer's. nullopt: none takes at most `below`
// seconds, or the limits are spent. Errors: Cancelled; those of BuildGraphPlan.
absl::StatusOr<std::optional<OverlappedStrategy>> OverlapBest(const GraphQuestion& q, double below,
                                                              const SearchLimits& limits, StepTimeEvaluator& evaluator);

// Draws all actions evenly; every second draw keeps those of the best baseline but for one run of groups.
void SearchGraphRandomly(const GraphQuestion& q);

// Metropolis: a change of one group is kept if it shortens the step, and otherwise with the probability
// exp(-20 x what it lengthens the step / the seconds of the first) (FlexFlow, Jia and others 2018, section 6.2).
void SearchGraphByMetropolis(const GraphQuestion& q);

// The cross-entropy method: each group draws its action from a distribution of its own, which moves to the best tenth
// of the draws (Post, Gao and others 2018, without its proximal policy steps in between).
void SearchGraphByCrossEntropy(const GraphQuestion& q);

}  // namespace medley::sched

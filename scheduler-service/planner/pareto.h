// The Pareto front of cost and throughput: all feasible plans that are not both more expensive (in USD for the whole
// job) and slower than another one.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "common/model/provisioned_plan.h"
#include "common/model/reason.h"
#include "common/model/resource.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planning/budget.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

struct ParetoResult {
  std::vector<model::ProvisionedPlan> plans;  // slowest first: each further one is faster and more expensive
  bool complete = true;                       // false: the time ran out; plans are valid, but better ones may exist
  double planning_seconds = 0;
  std::vector<model::Reason> reasons;  // why there is no plan, if `plans` is empty
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::vector<model::Resource> resources;
};

inline constexpr int kDefaultParetoPoints = 64;

// Returns at most `max_points` plans of the front (0: kDefaultParetoPoints; 1: only the cheapest): both ends, and
// between them the plans nearest to evenly spread throughputs. Ignores the planner in the request: the front is exact.
// Stops like MakePlan. Errors: InvalidArgument (invalid request, max_points < 0), DeadlineExceeded (no plan was found
// in time). Thread-safe.
absl::StatusOr<ParetoResult> MakePareto(const model::PlanRequest& request, const PriceOrigin& origin, int max_points,
                                        const base::Clock& clock, std::stop_token stop,
                                        base::SteadyTime deadline = base::SteadyTime::max());

struct Front {
  std::vector<Provisioned> plans;  // slowest first
  bool complete = true;
};

// The whole front. Costs that differ by less than kSameCost are equal, and then the faster plan is kept.
Front ExactFront(const Problem& problem, const Budget& budget);

// The indices of the plans that MakePareto keeps of a front with these `throughputs` (ascending).
std::vector<size_t> Thinned(const std::vector<double>& throughputs, int max_points);

}  // namespace medley::sched

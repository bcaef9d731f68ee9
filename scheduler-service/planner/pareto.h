// The front of cost and throughput: every plan that is not both dearer (in USD of the whole job) and slower than
// another, within the other constraints.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/planning.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

struct ParetoResult {
  std::vector<model::ProvisionedPlan> plans;  // slowest first: each next one is faster and dearer
  bool complete = true;                       // false: time ended first; plans are real, better ones may exist
  double planning_seconds = 0;
  std::vector<model::Reason> reasons;  // why there is no plan at all
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::vector<model::Resource> resources;
};

inline constexpr int kDefaultParetoPoints = 64;

// At most `max_points` (0: kDefaultParetoPoints; 1: the cheapest) plans of the front: both ends and, of those between,
// the ones nearest to evenly spread throughputs. The planner that the request names is not used: the front is exact.
// Stops like MakePlan. Errors: InvalidArgument (malformed request, max_points < 0), DeadlineExceeded (no plan was found
// in time). Thread-safe.
absl::StatusOr<ParetoResult> MakePareto(const model::PlanRequest& request, const PriceOrigin& origin, int max_points,
                                        const base::Clock& clock, std::stop_token stop,
                                        base::SteadyTime deadline = base::SteadyTime::max());

struct Front {
  std::vector<Provisioned> plans;  // slowest first
  bool complete = true;
};

// The whole front. Costs nearer than kSameCost are one cost: the faster plan is kept.
Front ExactFront(const Problem& problem, const Budget& budget);

// Indices into a front of `throughputs` (ascending) of what MakePareto keeps.
std::vector<size_t> Thinned(const std::vector<double>& throughputs, int max_points);

}  // namespace medley::sched

// From a planning question to its answer: the one path behind gRPC, REST and the command line.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/planning.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// Where the prices in the request came from.
struct PriceOrigin {
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
};

// The plan of the planner that the request names, with alternatives and execution plan; or reasons. Prices must be
// filled in; a resource without one makes the answer infeasible (constraint "price"). Stops at the request's time
// budget, at `deadline` or when `stop` is requested, with the best plan known then. Reproducible from (request, seed)
// but for planning_seconds, unless time ran out. Errors: InvalidArgument (malformed request, unknown planner),
// DeadlineExceeded (nothing was found in time). Thread-safe.
absl::StatusOr<model::PlanResult> MakePlan(const model::PlanRequest& request, const PriceOrigin& origin,
                                           const Registry& registry, const base::Clock& clock, std::stop_token stop,
                                           base::SteadyTime deadline = base::SteadyTime::max());

struct ProvisionResult {
  std::optional<model::ProvisionedPlan> plan;
  std::vector<model::Reason> reasons;
};

// The cheapest units for `schedule` (resource type of each layer). Errors: InvalidArgument with the path.
absl::StatusOr<ProvisionResult> MakeProvision(const model::PlanRequest& request,
                                              const std::vector<std::string>& schedule, const std::string& method);

// The cost model's word on `schedule` with `units` of each stage; reasons: what it violates.
absl::StatusOr<ProvisionResult> MakeEvaluation(const model::PlanRequest& request,
                                               const std::vector<std::string>& schedule, const std::vector<int>& units);

}  // namespace medley::sched

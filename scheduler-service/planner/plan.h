// Computes the result of a planning request. gRPC, REST and the command line all use these functions.
#pragma once

#include <absl/status/statusor.h>

#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/forward.h"
#include "common/model/provisioned_plan.h"
#include "common/model/reason.h"
#include "scheduler-service/planning/registry.h"

namespace medley::sched {

// The source of the prices in the request.
struct PriceOrigin {
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
};

// Errors: InvalidArgument for a request whose objective is not the least USD, or which is on devices.
absl::Status CheckGoalIsCost(const model::PlanRequest& request);

// Runs the planner that the request names; on devices as planning/answer_on_devices.h says. For plans of units the
// simulator chooses among its best candidates where it can, for every objective (choice.h). Returns the plan
// with alternatives and the execution plan, or the reasons why there is none. Prices must be filled in; a resource
// without a price makes the request infeasible (constraint "price"). At the end of the time budget, at `deadline` or
// when `stop` is requested, returns the best plan found so far. Unless the time ran out or the planner is not
// deterministic(), the result depends only on (request, seed), not counting planning_seconds. Errors: InvalidArgument
// (invalid request, unknown planner), DeadlineExceeded (no plan was found in time). Thread-safe.
absl::StatusOr<model::PlanResult> MakePlan(const model::PlanRequest& request, const PriceOrigin& origin,
                                           const Registry& registry, const base::Clock& clock, std::stop_token stop,
                                           base::SteadyTime deadline = base::SteadyTime::max());

struct ProvisionResult {
  std::optional<model::ProvisionedPlan> plan;
  std::vector<model::Reason> reasons;
};

// The resource type of each layer, and the layers with which a stage begins although the layer before has the same
// type.
struct NamedSchedule {
  std::vector<std::string> types;
  std::vector<int> cuts;  // ascending
};

// Computes the cheapest units for `schedule`. Errors: InvalidArgument with the field's path.
absl::StatusOr<ProvisionResult> MakeProvision(const model::PlanRequest& request, const NamedSchedule& schedule);

// Evaluates `schedule` with the given units of each stage. `reasons` are the violated constraints.
absl::StatusOr<ProvisionResult> MakeEvaluation(const model::PlanRequest& request, const NamedSchedule& schedule,
                                               const std::vector<int>& units);

}  // namespace medley::sched

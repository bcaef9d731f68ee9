// The answer to a planning request (the proto is medley.scheduler.v1.PlanResponse). Immutable values.
//
// Money is in USD, time in seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "common/model/prediction.h"
#include "common/model/provisioned_plan.h"
#include "common/model/reason.h"
#include "common/model/resource.h"

namespace medley::model {

// What the simulator says of PlanResult::plan, which it chose.
struct SimulatedPlan {
  double throughput = 0;  // samples/s
  double cost_usd = 0;
  int candidates = 0;  // plans that were compared by the simulator
  bool operator==(const SimulatedPlan&) const = default;
};

// The answer to a request with a cluster. Seconds are those of a step in steady state.
struct StepTimePlan {
  double seconds = 0;  // by the simulator
  double throughput = 0;
  double lower_bound_seconds = 0;  // proven for the closed form, or without one for every plan; 0: not proven
  double model_seconds = 0;        // by the closed form with which the planner searched; 0: it has none
  int64_t simulated = 0;           // plans that were timed by the simulator
  int64_t repaired = 0;            // plans that were illegal, so the planner changed them
  struct Alternative {
    std::string label;
    double seconds = 0;
    std::string failure;      // why there is no such plan, instead of seconds
    double usd_per_hour = 0;  // 0: unknown
    bool operator==(const Alternative&) const = default;
  };
  std::vector<Alternative> alternatives;
  std::string explanation;    // one fact a line
  double usd_per_hour = 0;    // of the devices of the plan; 0: one of them has no price
  double usd_per_step = 0;    // the same for a step
  double seconds_to_end = 0;  // of the samples that are left; 0: the request does not say how many
  double usd = 0;             // for them; 0: unknown
  int choices = 0;  // choices of devices that were planned on, because of the constraints; 0: all devices only
  bool operator==(const StepTimePlan&) const = default;
};

struct PlanResult {
  std::optional<ProvisionedPlan> plan;  // nullopt: infeasible, see reasons; or `step_time` is set
  std::optional<StepTimePlan> step_time;
  std::optional<SimulatedPlan> simulated;  // nullopt: not simulated
  std::vector<Reason> reasons;
  std::string planner;
  double planning_seconds = 0;
  uint64_t seed = 0;
  std::optional<double> lower_bound_usd;
  std::optional<double> gap;                       // of the objective: (value - bound) / value
  std::optional<double> lower_bound_usd_per_hour;  // instead of lower_bound_usd, with kCostPerHour
  std::optional<double> lower_bound_seconds;       // the same, with kTime
  int64_t catalog_revision = 0;
  std::string price_time;  // RFC 3339 or empty
  std::optional<ExecutionPlan> execution_plan;
  std::vector<Alternative> alternatives;
  std::vector<Resource> resources;       // those of the request, with prices filled in
  std::optional<Prediction> prediction;  // nullopt: nothing was observed yet
  std::string judge;                     // that chose the plan: "simulator" or "closed form"; empty: no plan
  std::string policy;                    // bytes; set if PolicyOptions::return_policy
  std::vector<std::string> notes;        // sentences, for example why the plan is not of the requested planner
  // Not in the proto. False if the time budget or the caller ended planning early, or if the planner is not
  // deterministic: another run may find another plan.
  bool complete = true;
};

}  // namespace medley::model

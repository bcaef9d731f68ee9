// Simulates the cost of a job with recorded prices, for several strategies to choose where it runs.
//
// The job has a fixed number of samples. At every change of a published price (scheduler-service/catalog/hysteresis.h)
// a strategy may replan (planner exact) and move by the operator's own rule (operator/lifecycle/replan_decision.h). The
// cost is the recorded price, not the published one, of every unit for every second. A move stops the job for
// `pause_seconds`, and the new units cost extra for `warm_up_seconds`. Deterministic.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/hysteresis.h"

namespace medley::bench {

// The recorded price of a resource type from `time` on.
struct PriceChange {
  double time = 0;  // seconds since 1970
  size_t type = 0;  // index into Scenario::request.resources
  double usd_per_unit_hour = 0;
};

struct Scenario {
  std::string name;
  // Without prices. Every type must have profiles. "{place}" in serverType is replaced by the place.
  model::PlanRequest request;
  std::vector<bool> on_demand;  // by type
  // A plan uses only types of one place, and types of place "".
  std::vector<std::string> place;    // by type
  std::vector<PriceChange> changes;  // by time
  double begin = 0, end = 0;         // seconds since 1970
  sched::HysteresisOptions hysteresis;
  double pause_seconds = 1;
  double warm_up_seconds = 180;
  double min_saving = 0.05;
  double cooldown_seconds = 3600;
};

struct Strategy {
  std::string name;
  bool replan = true;  // replan when a price change is published; otherwise keep the first plan
  bool on_demand_only = false;
  bool single_type = false;  // use the cheapest plan with only one type
  bool follow_always =
      false;  // replan at every recorded change and move whenever the plan changes, without rule and hysteresis
  bool free_moves = false;  // moves cost nothing: a bound for all strategies
};

struct Outcome {
  std::string strategy;
  double usd = 0;
  double hours = 0;
  int plans = 0;
  int moves = 0;
  int publications = 0;
  double share_above_floor = 0;  // share of the time until the last sample
  struct Step {
    double time = 0;
    double usd_per_hour = 0;
    std::string plan;
  };
  std::vector<Step> steps;  // at the start, at every move, and daily
};

// Errors: no plan exists at the start of the scenario.
absl::StatusOr<Outcome> Replay(const Scenario& scenario, const Strategy& strategy);

}  // namespace medley::bench

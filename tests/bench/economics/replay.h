// What a job would have cost: recorded prices replayed against ways to choose where it runs.
//
// One job of a fixed number of samples. At every change of a published price (scheduler-service/catalog/hysteresis.h)
// a strategy may plan again (planner exact) and move by the operator's own rule (operator/lifecycle/replan_decision.h).
// Money is the recorded price, not the published one, of every unit for every second; a move stands still for
// `pause_seconds` and pays the new units for `warm_up_seconds` on top. Deterministic.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/hysteresis.h"

namespace medley::bench {

// The recorded price of a resource type from a moment on.
struct PriceChange {
  double time = 0;  // seconds since 1970
  size_t type = 0;  // index into Scenario::request.resources
  double usd_per_unit_hour = 0;
};

struct Scenario {
  std::string name;
  // Without prices; every type profiled. "{place}" in serverType stands for the place.
  model::PlanRequest request;
  std::vector<bool> on_demand;  // by type
  // Places: a plan takes types of one place only, and those of place "".
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
  bool replan = true;  // at published changes; else the first plan is kept
  bool on_demand_only = false;
  bool single_type = false;    // the cheapest plan on one type only
  bool follow_always = false;  // moves whenever the plan changes, at every recorded change, without rule or hysteresis
  bool free_moves = false;     // moves cost nothing: a bound, not a strategy
};

struct Outcome {
  std::string strategy;
  double usd = 0;
  double hours = 0;
  int plans = 0;
  int moves = 0;
  int publications = 0;
  double share_above_floor = 0;  // of the time until the last sample
  struct Step {
    double time = 0;
    double usd_per_hour = 0;
    std::string plan;
  };
  std::vector<Step> steps;  // at the beginning, at moves, and daily
};

// Errors: a scenario in which no plan exists at the beginning.
absl::StatusOr<Outcome> Replay(const Scenario& scenario, const Strategy& strategy);

}  // namespace medley::bench

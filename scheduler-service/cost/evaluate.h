// What the cost model says of a complete choice: schedule and units of every stage.
//
// Pure and thread-safe.
#pragma once

#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

struct Evaluation {
  model::ProvisionedPlan plan;
  // Constraints that it violates; none: feasible. Ordered: memory, limit, minUnits, maxUnits, minThroughput, deadline,
  // maxCostPerHour, budget.
  std::vector<model::Reason> violations;
};

// `stages` cover all layers in order, each on a type that its layers are profiled on, with units > 0. Servers are as
// many as the model needs, and at least `least_servers` (static ratios buy more than needed).
Evaluation Evaluate(const Problem& problem, const std::vector<StageChoice>& stages, int least_servers = 0);

// Only the money and the speed, for inner loops.
struct Score {
  double throughput = 0;
  double hourly = 0;  // USD/h
  double cost = 0;    // USD
  int server_units = 0;
};
Score ScoreOf(const Problem& problem, const std::vector<StageChoice>& stages, int least_servers = 0);

// Units of each type that the choice takes, servers included.
std::vector<int> UnitsByType(const Problem& problem, const std::vector<StageChoice>& stages, int server_units);

}  // namespace medley::sched

// Evaluates a complete choice (schedule and units of every stage) with the cost model.
//
// Pure and thread-safe.
#pragma once

#include <vector>

#include "common/model/provisioned_plan.h"
#include "common/model/reason.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/cost/score.h"

namespace medley::sched {

struct Evaluation {
  model::ProvisionedPlan plan;
  // The violated constraints; empty when the choice is feasible. In this order: memory, limit, minUnits, maxUnits,
  // minThroughput, deadline, maxCostPerHour, budget.
  std::vector<model::Reason> violations;
};

// `stages` must cover all layers in order, each on a type for which its layers have profiles, with units > 0. The plan
// gets the parameter servers that the model needs.
Evaluation Evaluate(const Problem& problem, const std::vector<StageChoice>& stages);

// Cost and throughput only, for inner loops.
Score ScoreOf(const Problem& problem, const std::vector<StageChoice>& stages);

// The units of each type that the choice uses, including parameter servers.
std::vector<int> UnitsByType(const Problem& problem, const std::vector<StageChoice>& stages, int server_units);

}  // namespace medley::sched

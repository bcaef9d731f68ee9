// What provisioning answers: a schedule with the units of every stage.
#pragma once

#include <vector>

#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

struct Provisioned {
  std::vector<StageChoice> stages;  // with units
  Score score;
};

// Whether `stages`, scored as `score`, keep every constraint that grows with units or money (limits, maxUnits,
// maxCostPerHour, budget) and the required throughput. Memory is Problem::Allowed's.
bool KeepsConstraints(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score);

}  // namespace medley::sched

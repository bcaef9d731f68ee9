// The result of provisioning: a schedule with the units of every stage.
#pragma once

#include <vector>

#include "scheduler-service/cost/score.h"
#include "scheduler-service/cost/terms.h"

namespace medley::sched {

class Problem;

struct Provisioned {
  std::vector<StageChoice> stages;  // with units
  Score score;
};

// True if `stages` with score `score` meet all constraints: limits, memory, minUnits, maxUnits, maxCostPerHour, budget
// and the required throughput.
bool KeepsConstraints(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score);

}  // namespace medley::sched

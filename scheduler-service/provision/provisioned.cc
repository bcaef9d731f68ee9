#include "scheduler-service/provision/provisioned.h"

#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

bool KeepsConstraints(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score) {
  const std::vector<int> used = UnitsByType(problem, stages, score.server_units);
  for (int t = 0; t < problem.types(); ++t) {
    if (used[static_cast<size_t>(t)] > problem.limit(t)) return false;
  }
  const model::Constraints& c = problem.request().constraints;
  int trainers = 0;
  for (const StageChoice& s : stages) {
    if (!problem.Allowed(s.first, s.last, s.type) || s.units < c.min_units) return false;
    trainers += s.units;
  }
  if (c.max_units > 0 && trainers > c.max_units) return false;
  if (c.max_cost_per_hour > 0 && score.hourly > c.max_cost_per_hour * (1 + kTolerance)) return false;
  if (c.budget_usd > 0 && score.cost > c.budget_usd * (1 + kTolerance)) return false;
  return score.throughput >= problem.RequiredThroughput();
}

}  // namespace medley::sched

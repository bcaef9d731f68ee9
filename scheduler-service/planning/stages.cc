#include "scheduler-service/planning/stages.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {
namespace {

int TypeNamed(const Problem& problem, const std::string& name) {
  for (int t = 0; t < problem.types(); ++t) {
    if (problem.type(t).name == name) return t;
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::vector<StageChoice>> StagesOf(const Problem& problem, const model::ExecutionPlan& plan) {
  std::vector<StageChoice> stages;
  int next = 0;
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const model::Stage& stage = plan.stages[i];
    const bool runs = stage.operations.size() == 1 && stage.operations[0].first == next &&
                      stage.operations[0].end > next && stage.operations[0].end <= problem.layers();
    const int type = stage.groups.size() == 1 ? TypeNamed(problem, stage.groups[0].pool) : -1;
    if (!runs || type < 0 || stage.groups[0].units < 1) {
      return base::InvalidArgument(
          "plan.stages[{}]: must have the layers after those of the stage before, in one pool of the request", i);
    }
    next = stage.operations[0].end;
    stages.push_back({stage.operations[0].first, next - 1, type, stage.groups[0].units});
  }
  if (next != problem.layers()) return base::InvalidArgument("plan.stages: must have all {} layers", problem.layers());
  return stages;
}

Figures FiguresOf(const Problem& problem, const std::vector<StageChoice>& stages, const Score& score) {
  Figures figures;
  figures.throughput = score.throughput;
  figures.usd_per_hour = score.hourly;
  figures.usd = score.cost;
  if (score.throughput > 0) {
    figures.seconds = problem.batch() / score.throughput;
    figures.seconds_to_end = problem.total_samples() / score.throughput;
  }
  figures.units = score.server_units;
  for (const StageChoice& stage : stages) {
    figures.units += stage.units;
    figures.least_units = figures.least_units == 0 ? stage.units : std::min(figures.least_units, stage.units);
  }
  return figures;
}

Score ScoreIn(const Problem& problem, const std::vector<StageChoice>& stages, const Figures& figures) {
  Score score = ScoreOf(problem, stages);
  score.throughput = figures.throughput;
  score.cost = figures.usd;
  return score;
}

}  // namespace medley::sched

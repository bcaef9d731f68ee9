#include "scheduler-service/planner/stage_planner.h"

#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"

namespace medley::sched {

absl::StatusOr<Candidate> StagePlanner::Search(const Question& question, Judge& judge, uint64_t seed,
                                               const Budget& budget) const {
  const Problem& problem = question.units();
  MEDLEY_ASSIGN_OR_RETURN(Solution solution, SolveStages(problem, seed, budget));
  Candidate candidate;
  candidate.complete = solution.complete;
  candidate.lower_bound = solution.lower_bound.value_or(0);
  candidate.planner = std::move(solution.planner);
  candidate.policy = std::move(solution.policy);
  candidate.notes = std::move(solution.notes);
  if (!solution.best) return candidate;
  candidate.plan = BuildExecutionPlan(problem, solution.best->stages);
  MEDLEY_ASSIGN_OR_RETURN(candidate.figures, judge.Of(*candidate.plan));
  candidate.judged = 1;
  return candidate;
}

void Report(const Budget& budget, const Problem& problem, const Provisioned& plan) {
  if (!budget.listened()) return;
  budget.Report(BuildExecutionPlan(problem, plan.stages), FiguresOf(problem, plan.stages, plan.score));
}

}  // namespace medley::sched

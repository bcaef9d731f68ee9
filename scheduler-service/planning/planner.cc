#include "scheduler-service/planning/planner.h"

#include <memory>

#include "common/base/status.h"
#include "scheduler-service/planning/candidate.h"

namespace medley::sched {

absl::StatusOr<Candidate> Planner::Solve(const Question& question, Judge& judge, uint64_t seed,
                                         const Budget& budget) const {
  MEDLEY_CHECK(question.supply() == takes().supply, "the planner does not take such questions");
  return Search(question, judge, seed, budget);
}

absl::StatusOr<Candidate> Planner::Solve(const Question& question, uint64_t seed, const Budget& budget) const {
  const std::unique_ptr<Judge> judge = MakeUsualJudge(question, budget.stop());
  return Solve(question, *judge, seed, budget);
}

}  // namespace medley::sched

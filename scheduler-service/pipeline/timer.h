// Times pipelines by the simulator, each of them once. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/step_time/planner.h"
#include "scheduler-service/step_time/plans.h"

namespace medley::sched {

class PipelineTimer {
 public:
  // Both must outlive it.
  PipelineTimer(const StepTimeProblem& problem, const SearchLimits& limits)
      : problem_(problem), limits_(limits), evaluator_(problem, limits) {}

  // kForever for a pipeline that does not fit or was cancelled; `why` says the last reason.
  double Seconds(const std::vector<PipelineStage>& stages);

  // The number of simulations.
  int64_t calls() const { return evaluator_.calls(); }
  const std::vector<PipelineStage>& best() const { return best_; }
  double best_seconds() const { return best_seconds_; }
  const std::string& why() const { return why_; }
  // The best so far as a solution, with its seconds in closed form.
  StepTimeSolution Solution() const;

 private:
  const StepTimeProblem& problem_;
  const SearchLimits& limits_;
  StepTimeEvaluator evaluator_;
  std::map<std::vector<int>, double> known_;  // by stages, flattened
  std::vector<PipelineStage> best_;
  double best_seconds_ = kForever;
  std::string why_;
};

}  // namespace medley::sched

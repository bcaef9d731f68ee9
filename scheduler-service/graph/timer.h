// Times strategies by the simulator, each of them once. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "scheduler-service/graph/grouping.h"
#include "scheduler-service/graph/strategy.h"
#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/step_time/planner.h"

namespace medley::sched {

class GraphTimer {
 public:
  // All must outlive it. At most `calls` simulations; strategies with a plan that it knows cost none.
  GraphTimer(const StepTimeProblem& problem, const OperationGroups& groups, const SearchLimits& limits, int64_t calls)
      : problem_(problem), groups_(groups), limits_(limits), evaluator_(problem, limits), most_(calls) {}

  // kForever for a strategy that does not fit, or after the last call. One that does not fit is timed once more without
  // the versions of parameters that a recovery returns to.
  double Seconds(const GraphStrategy& strategy);
  // Why a strategy takes forever: a sentence.
  std::string WhyNot(const GraphStrategy& strategy) const;
  // For a strategy that was timed. Errors: those of BuildGraphPlan.
  absl::StatusOr<model::ExecutionPlan> Plan(const GraphStrategy& strategy) const;

  // More simulations than before.
  void Allow(int64_t more) { most_ = evaluator_.calls() + more; }
  bool Spent() const { return evaluator_.calls() >= most_ || limits_.Spent(); }
  int64_t calls() const { return evaluator_.calls(); }
  int64_t left() const { return most_ - evaluator_.calls(); }
  const GraphStrategy& best() const { return best_; }  // without actions: none fits
  double best_seconds() const { return best_seconds_; }
  const std::string& why() const { return why_; }  // the last reason why a strategy did not fit; empty: all did

 private:
  const StepTimeProblem& problem_;
  const OperationGroups& groups_;
  const SearchLimits& limits_;
  StepTimeEvaluator evaluator_;
  int64_t most_;
  struct Known {
    double seconds = kForever;
    bool without_undo = false;
    std::string why = {};
  };
  std::map<GraphStrategy, Known> known_;  // canonical ones
  GraphStrategy best_;
  double best_seconds_ = kForever;
  std::string why_;
};

}  // namespace medley::sched

// Times strategies by a judge, each of them once. Not thread-safe.
#pragma once

#include <map>
#include <string>

#include "scheduler-service/graph/grouping.h"
#include "scheduler-service/graph/strategy.h"
#include "scheduler-service/planning/judge.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

class GraphTimer {
 public:
  // All must outlive it. The judge is of a question about devices, and is asked at most `calls` times; strategies with
  // a plan that the timer knows cost nothing.
  GraphTimer(Judge& judge, const OperationGroups& groups, const Budget& limits, int64_t calls)
      : problem_(judge.question().devices()),
        judge_(judge),
        groups_(groups),
        limits_(limits),
        before_(judge.judged()),
        most_(calls) {}

  // kForever for a strategy that does not fit, or after the last call. One that does not fit is timed once more without
  // the versions of parameters that a recovery returns to.
  double Seconds(const GraphStrategy& strategy);
  // Why a strategy takes forever: a sentence.
  std::string WhyNot(const GraphStrategy& strategy) const;
  // For a strategy that was timed. Errors: those of BuildGraphPlan.
  absl::StatusOr<model::ExecutionPlan> Plan(const GraphStrategy& strategy) const;

  // More judgements than before.
  void Allow(int64_t more) { most_ = calls() + more; }
  bool Spent() const { return calls() >= most_ || limits_.Spent(); }
  int64_t calls() const { return judge_.judged() - before_; }
  int64_t left() const { return most_ - calls(); }
  Judge& judge() const { return judge_; }
  const GraphStrategy& best() const { return best_; }        // without actions: none fits
  double best_whole_seconds() const { return best_whole_; }  // of strategies with whole replicas
  double best_seconds() const { return best_figures_.seconds; }
  const Figures& best_figures() const { return best_figures_; }
  const std::string& why() const { return why_; }  // the last reason why a strategy did not fit; empty: all did

 private:
  const DeviceProblem& problem_;
  Judge& judge_;
  const OperationGroups& groups_;
  const Budget& limits_;
  const int64_t before_;
  int64_t most_;
  struct Known {
    double seconds = kForever;
    bool without_undo = false;
    std::string why = {};
  };
  std::map<GraphStrategy, Known> known_;  // canonical ones
  GraphStrategy best_;
  Figures best_figures_{.seconds = kForever};
  double best_whole_ = kForever;
  std::string why_;
};

}  // namespace medley::sched

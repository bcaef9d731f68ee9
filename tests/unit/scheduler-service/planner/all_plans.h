// Every feasible plan of stages of a small request.
#pragma once

#include <functional>
#include <vector>

#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

inline std::vector<Provisioned> AllPlans(const Problem& problem) {
  std::vector<Provisioned> plans;
  std::vector<StageChoice> stages;
  const std::function<void(int)> from = [&](int layer) {
    if (layer == problem.layers()) {
      const Score score = ScoreOf(problem, stages);
      if (KeepsConstraints(problem, stages, score)) plans.push_back({stages, score});
      return;
    }
    for (int t = 0; t < problem.types(); ++t) {
      for (int last = layer; last < problem.layers() && problem.Allowed(layer, last, t); ++last) {
        for (int units = problem.min_units(); units <= problem.limit(t); ++units) {
          stages.push_back({layer, last, t, units});
          from(last + 1);
          stages.pop_back();
        }
      }
    }
  };
  from(0);
  return plans;
}

}  // namespace medley::sched

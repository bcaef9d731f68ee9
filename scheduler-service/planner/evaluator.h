// How good a candidate is. One evaluator scores all candidates of a question.
//
// Const and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <stop_token>
#include <string_view>
#include <vector>

#include "common/model/forward.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual std::string_view name() const = 0;
  // Throughput and cost of a choice; not whether it keeps the constraints. Errors: those of the implementation, for a
  // choice that it cannot score.
  virtual absl::StatusOr<Score> Evaluate(const Problem& problem, const std::vector<StageChoice>& stages) const = 0;
};

// kCostModel: by scheduler-service/cost, without errors. kSimulator: by the seconds of a step of the plan's program in
// simulated time (scheduler-service/simulate); FailedPrecondition for a plan that is too large to simulate it beside
// others, or that cannot be compiled.
std::unique_ptr<Evaluator> MakeEvaluator(model::EvaluatorKind kind, std::stop_token stop);

// Samples/s of the plan in simulated time, with the times of the request's model; 0 for a plan that is too large to
// simulate it beside others, or that cannot be compiled. Pure.
double SimulatedThroughput(const model::ExecutionPlan& plan, const model::PlanRequest& request, std::stop_token stop);

}  // namespace medley::sched

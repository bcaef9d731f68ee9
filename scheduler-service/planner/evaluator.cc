#include "scheduler-service/planner/evaluator.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/planner/execution_plan.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::sched {
namespace {

class CostModelEvaluator final : public Evaluator {
 public:
  std::string_view name() const override { return "cost model"; }
  absl::StatusOr<Score> Evaluate(const Problem& problem, const std::vector<StageChoice>& stages) const override {
    return ScoreOf(problem, stages);
  }
};

class SimulatorEvaluator final : public Evaluator {
 public:
  explicit SimulatorEvaluator(std::stop_token stop) : stop_(std::move(stop)) {}
  std::string_view name() const override { return "simulator"; }
  absl::StatusOr<Score> Evaluate(const Problem& problem, const std::vector<StageChoice>& stages) const override {
    Score score = ScoreOf(problem, stages);  // prices do not depend on time
    score.throughput = SimulatedThroughput(BuildExecutionPlan(problem, stages), problem.request(), stop_);
    if (score.throughput <= 0) return base::FailedPrecondition("the plan cannot be simulated");
    score.cost = score.hourly * problem.total_samples() / score.throughput / 3600;
    return score;
  }

 private:
  const std::stop_token stop_;
};

}  // namespace

std::unique_ptr<Evaluator> MakeEvaluator(model::EvaluatorKind kind, std::stop_token stop) {
  if (kind == model::EvaluatorKind::kSimulator) return std::make_unique<SimulatorEvaluator>(std::move(stop));
  return std::make_unique<CostModelEvaluator>();
}

double SimulatedThroughput(const model::ExecutionPlan& plan, const model::PlanRequest& request, std::stop_token stop) {
  PlanSimulationOptions options{.max_instructions = 20'000, .count_memory = false};
  options.stop = std::move(stop);
  const auto simulated = SimulatePlan(plan, model::ProfileOf(request), options);
  return simulated.ok() ? simulated->throughput() : 0;
}

}  // namespace medley::sched

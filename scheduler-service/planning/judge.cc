#include "scheduler-service/planning/judge.h"

#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::sched {
namespace {

class ClosedForm final : public Judge {
 public:
  explicit ClosedForm(const Question& question) : Judge(question) {}
  std::string_view name() const override { return "closed form"; }

 private:
  absl::StatusOr<Figures> Judged(const model::ExecutionPlan& plan) override {
    const Problem& problem = question().units();
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<StageChoice> stages, StagesOf(problem, plan));
    return FiguresOf(problem, stages, ScoreOf(problem, stages));
  }
};

class UnitSimulator final : public Judge {
 public:
  UnitSimulator(const Question& question, std::stop_token stop) : Judge(question), stop_(std::move(stop)) {}
  std::string_view name() const override { return "simulator"; }

 private:
  absl::StatusOr<Figures> Judged(const model::ExecutionPlan& plan) override {
    const Problem& problem = question().units();
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<StageChoice> stages, StagesOf(problem, plan));
    Score score = ScoreOf(problem, stages);  // prices do not depend on time
    score.throughput = SimulatedThroughput(plan, problem.request(), stop_);
    if (score.throughput <= 0) return base::FailedPrecondition("the plan cannot be simulated");
    score.cost = score.hourly * problem.total_samples() / score.throughput / 3600;
    return FiguresOf(problem, stages, score);
  }

  const std::stop_token stop_;
};

class SimulatorOfDevices final : public Judge {
 public:
  SimulatorOfDevices(const Question& question, Measure measure, std::stop_token stop)
      : Judge(question), simulator_(question.devices(), std::move(stop)), measure_(std::move(measure)) {}
  std::string_view name() const override { return measure_ ? "measurement" : "simulator"; }

 private:
  absl::StatusOr<Figures> Judged(const model::ExecutionPlan& plan) override {
    MEDLEY_ASSIGN_OR_RETURN(double seconds, simulator_.Seconds(plan));
    if (measure_) {
      MEDLEY_ASSIGN_OR_RETURN(seconds, measure_(plan));
    }
    return FiguresOf(question().devices(), plan, seconds);
  }

  DeviceSimulator simulator_;
  const Measure measure_;  // empty: the simulator has the last word
};

}  // namespace

absl::StatusOr<Figures> Judge::Of(const model::ExecutionPlan& plan) {
  ++judged_;
  return Judged(plan);
}

absl::StatusOr<Figures> Judge::Within(const model::ExecutionPlan& plan) {
  MEDLEY_RETURN_IF_ERROR(question_.CheckBounds(plan, std::nullopt));
  MEDLEY_ASSIGN_OR_RETURN(Figures figures, Of(plan));
  MEDLEY_RETURN_IF_ERROR(question_.CheckBounds(plan, figures));
  return figures;
}

absl::StatusOr<double> Judge::SecondsWithin(const model::ExecutionPlan& plan) {
  MEDLEY_ASSIGN_OR_RETURN(const Figures figures, Within(plan));
  return figures.seconds;
}

std::unique_ptr<Judge> MakeClosedForm(const Question& question) {
  MEDLEY_CHECK(question.supply() == Supply::kUnits, "the closed form is for questions about units");
  return std::make_unique<ClosedForm>(question);
}

std::unique_ptr<Judge> MakeSimulator(const Question& question, std::stop_token stop) {
  if (question.supply() == Supply::kUnits) return std::make_unique<UnitSimulator>(question, std::move(stop));
  return std::make_unique<SimulatorOfDevices>(question, Measure(), std::move(stop));
}

std::unique_ptr<Judge> MakeMeasurement(const Question& question, Measure measure, std::stop_token stop) {
  return std::make_unique<SimulatorOfDevices>(question, std::move(measure), std::move(stop));
}

std::unique_ptr<Judge> MakeUsualJudge(const Question& question, std::stop_token stop) {
  return question.supply() == Supply::kUnits ? MakeClosedForm(question) : MakeSimulator(question, std::move(stop));
}

double SimulatedThroughput(const model::ExecutionPlan& plan, const model::PlanRequest& request, std::stop_token stop) {
  PlanSimulationOptions options{.max_instructions = 20'000, .count_memory = false};
  options.stop = std::move(stop);
  const auto simulated = SimulatePlan(plan, model::ProfileOf(request), options);
  return simulated.ok() ? simulated->throughput() : 0;
}

}  // namespace medley::sched

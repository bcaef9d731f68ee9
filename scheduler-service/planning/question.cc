#include "scheduler-service/planning/question.h"

#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/planning/stages.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

Question::Question(Problem problem) : units_(std::make_shared<const Problem>(std::move(problem))) {}

Question::Question(DeviceProblem problem) : devices_(std::make_shared<const DeviceProblem>(std::move(problem))) {}

absl::StatusOr<Question> Question::Compile(model::PlanRequest request) {
  if (request.on_devices()) {
    MEDLEY_ASSIGN_OR_RETURN(DeviceProblem problem, DeviceProblem::Compile(std::move(request)));
    return Question(std::move(problem));
  }
  MEDLEY_ASSIGN_OR_RETURN(Problem problem, Problem::Compile(std::move(request)));
  return Question(std::move(problem));
}

const model::PlanRequest& Question::request() const {
  return supply() == Supply::kUnits ? units().request() : devices().request();
}

double Question::samples() const { return supply() == Supply::kUnits ? units().batch() : devices().samples(); }

absl::Status Question::CheckBounds(const model::ExecutionPlan& plan, const std::optional<Figures>& figures) const {
  if (supply() == Supply::kDevices) {
    const std::optional<double> seconds = figures ? std::optional(figures->seconds) : std::nullopt;
    return sched::CheckBounds(request().constraints, devices(), plan, seconds);
  }
  if (!figures) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<StageChoice> stages, StagesOf(units(), plan));
  if (KeepsConstraints(units(), stages, ScoreIn(units(), stages, *figures))) return absl::OkStatus();
  return base::FailedPrecondition("the plan breaks a constraint of the request");
}

}  // namespace medley::sched

#include "cli/planner_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/planner_program.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/text.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/list_proto.h"

namespace medley::cli {
namespace {

namespace pb = scheduler::v1;

std::string TakesText(const pb::PlannerGoal& goal) {
  std::vector<std::string> takes = {goal.graphs() ? "graphs" : "chains of layers"};
  if (goal.tables()) takes.emplace_back("tables on parameter servers");
  if (goal.asynchronous()) takes.emplace_back("asynchronous schedules");
  if (goal.most_devices() > 0) takes.push_back(fmt::format("at most {} devices", goal.most_devices()));
  if (goal.proves_optimality()) takes.emplace_back("proves its answer");
  return fmt::format("{}", fmt::join(takes, ", "));
}

std::string OptionText(const pb::PlannerOption& option) {
  const std::string range = option.type() == "choice"
                                ? fmt::format("{}", fmt::join(option.choices(), " | "))
                                : fmt::format("{}, {} to {}", option.type(), option.least(), option.most());
  return fmt::format("    --option {}=...  {}; default {}: {}\n", option.name(), range, option.default_value(),
                     option.description());
}

}  // namespace

absl::StatusOr<pb::ListPlannersResponse> ListPlanners() {
  pb::ListPlannersResponse list;
  if (HasPlannerProgram(OwnFolder())) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, ListOfPlannerProgram(OwnFolder()));
    MEDLEY_RETURN_IF_ERROR(model::ParseText(text, list));
  } else {
    sched::ToProto(sched::BuiltinPlanners(), list);
  }
  return list;
}

std::string PlannersText(const pb::ListPlannersResponse& planners) {
  std::string text;
  for (const pb::PlannerInfo& planner : planners.planners()) {
    text += planner.name() + "\n";
    for (const pb::PlannerGoal& goal : planner.goals()) {
      const bool step = goal.objective() == pb::OBJECTIVE_STEP_TIME;
      text += fmt::format("  {}: {} ({})\n", step ? "fewest seconds of a step" : "least cost", goal.description(),
                          TakesText(goal));
      for (const pb::PlannerOption& option : goal.options()) text += OptionText(option);
    }
  }
  return text;
}

}  // namespace medley::cli

#include "scheduler-service/planner/list_proto.h"

#include <string>

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;

const char* KindName(OptionKind kind) {
  switch (kind) {
    case OptionKind::kInteger:
      return "integer";
    case OptionKind::kNumber:
      return "number";
    case OptionKind::kChoice:
      return "choice";
  }
  return "";
}

void OptionToProto(const Option& option, pb::PlannerOption& out) {
  out.set_name(std::string(option.name));
  out.set_type(KindName(option.kind));
  out.set_least(option.least);
  out.set_most(option.most);
  for (const std::string_view choice : option.choices) out.add_choices(std::string(choice));
  out.set_default_value(option.default_value);
  out.set_description(std::string(option.description));
}

// For a Planner or a StepTimePlanner.
template <typename P>
void GoalToProto(const P& planner, pb::Objective objective, pb::PlannerGoal& out) {
  out.set_objective(objective);
  out.set_description(std::string(planner.description()));
  const Takes takes = planner.takes();
  out.set_graphs(takes.graphs);
  out.set_tables(takes.tables);
  out.set_asynchronous(takes.asynchronous);
  out.set_most_devices(takes.most_devices);
  out.set_other_options(takes.other_options);
  for (const Option& option : planner.options()) OptionToProto(option, *out.add_options());
}

}  // namespace

void ToProto(const Registry& registry, pb::ListPlannersResponse& message) {
  for (const NamedPlanner& planner : registry.List()) {
    pb::PlannerInfo& info = *message.add_planners();
    info.set_name(std::string(planner.name));
    if (planner.cost != nullptr) {
      pb::PlannerGoal& goal = *info.add_goals();
      GoalToProto(*planner.cost, pb::OBJECTIVE_UNSPECIFIED, goal);
      goal.set_proves_optimality(planner.cost->proves_optimality());
    }
    if (planner.step_time != nullptr) GoalToProto(*planner.step_time, pb::OBJECTIVE_STEP_TIME, *info.add_goals());
  }
}

}  // namespace medley::sched

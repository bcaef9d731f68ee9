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

void GoalToProto(const Planner& planner, pb::PlannerGoal& out) {
  const Takes takes = planner.takes();
  const bool units = takes.supply == Supply::kUnits;
  out.set_objective(units ? pb::OBJECTIVE_UNSPECIFIED : pb::OBJECTIVE_STEP_TIME);
  out.set_description(std::string(planner.description()));
  out.set_proves_optimality(units && planner.proves_optimality());
  out.set_graphs(takes.graphs);
  out.set_tables(takes.tables);
  out.set_asynchronous(takes.asynchronous);
  out.set_most_devices(takes.most_devices);
  out.set_other_options(takes.other_options);
  for (const Option& option : planner.options()) OptionToProto(option, *out.add_options());
}

}  // namespace

void ToProto(const Registry& registry, pb::ListPlannersResponse& message) {
  for (const std::vector<const Planner*>& same : registry.ByName()) {
    pb::PlannerInfo& info = *message.add_planners();
    info.set_name(std::string(same.front()->name()));
    for (const Planner* planner : same) GoalToProto(*planner, *info.add_goals());
  }
}

}  // namespace medley::sched

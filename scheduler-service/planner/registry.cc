#include "common/base/status.h"
#include "scheduler-service/graph/graph_planners.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planner/auto_step_time.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {

void Registry::Add(std::unique_ptr<Planner> planner) {
  MEDLEY_CHECK(Find(planner->name()) == nullptr, "two planners have the same name");
  planners_.push_back(std::move(planner));
}

const Planner* Registry::Find(std::string_view name) const {
  for (const auto& planner : planners_) {
    if (planner->name() == name) return planner.get();
  }
  return nullptr;
}

Registry BuiltinPlanners() {
  Registry registry;
  registry.Add(MakeAuto());
  registry.Add(MakeExact());
  registry.Add(MakeBruteForce());
  registry.Add(MakeRlLstm());
  registry.Add(MakeRlRnn());
  registry.Add(MakeBayesian());
  registry.Add(MakeGenetic());
  registry.Add(MakeGreedy());
  registry.Add(MakeHeuristic());
  registry.Add(MakeCpuOnly());
  registry.Add(MakeGpuOnly());
  registry.step_time().Add(MakeAutoStepTime());
  registry.step_time().Add(MakeHierarchyPlanner());
  for (auto& planner : MakePipelinePlanners()) registry.step_time().Add(std::move(planner));
  for (auto& planner : MakeGraphPlanners()) registry.step_time().Add(std::move(planner));
  return registry;
}

}  // namespace medley::sched

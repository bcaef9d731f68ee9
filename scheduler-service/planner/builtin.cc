// The planners of the service. Adding one is a line here.
#include "scheduler-service/planner/builtin.h"

#include "scheduler-service/graph/graph_planners.h"
#include "scheduler-service/hierarchy/hierarchy_planner.h"
#include "scheduler-service/pipeline/pipeline_planners.h"
#include "scheduler-service/planner/auto_on_devices.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {

Registry BuiltinPlanners() {
  Registry registry;
  registry.Add(MakeAuto());
  registry.Add(MakeExact());
  registry.Add(MakeBruteForce());
  registry.Add(MakeRlLstm());
  registry.Add(MakeGreedy());
  registry.Add(MakeHeuristic());
  registry.Add(MakeCpuOnly());
  registry.Add(MakeGpuOnly());
  registry.Add(MakeAutoOnDevices());
  registry.Add(MakeHierarchyPlanner());
  for (auto& planner : MakePipelinePlanners()) registry.Add(std::move(planner));
  registry.Add(MakeGraph());
  return registry;
}

}  // namespace medley::sched

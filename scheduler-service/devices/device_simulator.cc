#include "scheduler-service/devices/device_simulator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/execution_plan.h"

namespace medley::sched {
namespace {

constexpr int64_t kMostInstructions = 200'000;  // of a step

}  // namespace

absl::StatusOr<double> DeviceSimulator::Seconds(const model::ExecutionPlan& plan) {
  MEDLEY_ASSIGN_OR_RETURN(const PlanSimulation simulated, Simulated(plan, 0));
  return simulated.simulation.seconds_per_step;
}

absl::StatusOr<PlanSimulation> DeviceSimulator::Timeline(const model::ExecutionPlan& plan) {
  return Simulated(plan, kMostInstructions * (kTimelineSteps + 2));
}

absl::StatusOr<ProgramBound> DeviceSimulator::Bound(const model::ExecutionPlan& plan) {
  MEDLEY_ASSIGN_OR_RETURN(PlanSimulation simulated, Simulated(plan, 0, true));
  return std::move(simulated.bound);
}

absl::StatusOr<PlanSimulation> DeviceSimulator::Simulated(const model::ExecutionPlan& plan, int64_t max_spans,
                                                          bool bound) {
  ++calls_;
  // Steps of a synchronous schedule are soon alike; an asynchronous pipeline takes as many as it has stages.
  const int stages = std::min(static_cast<int>(plan.placements.size()), problem_.asynchronous() ? 32 : 2);
  const DeviceLinks links{problem_.links(), problem_.index()};
  PlanSimulationOptions options{.steps = 8 + 4 * stages, .max_spans = max_spans, .max_instructions = kMostInstructions};
  options.links = &links;
  options.bound = bound;
  options.stop = stop_;
  std::vector<double> limits;
  for (const model::Device& device : plan.devices) {
    const auto found = problem_.index().find(device.id);
    if (found == problem_.index().end()) return base::InvalidArgument("device '{}' is not in the cluster", device.id);
    limits.push_back(problem_.MemoryBytes(found->second));
  }
  options.count_memory = std::ranges::any_of(limits, [](double bytes) { return bytes > 0; });
  MEDLEY_ASSIGN_OR_RETURN(PlanSimulation simulated, SimulatePlan(plan, problem_.profile(), options));
  if (options.count_memory) {
    MEDLEY_RETURN_IF_ERROR(program::CheckMemory(simulated.program, simulated.memory, limits));
  }
  return simulated;
}

}  // namespace medley::sched

#include "reproductions/heterog/bench/graph/busy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/simulate/plan_simulation.h"

namespace medley::reproductions::heterog {

absl::StatusOr<Busy> BusyIn(const sched::DeviceProblem& problem, const model::ExecutionPlan& plan) {
  const sched::DeviceLinks links{problem.links(), problem.index()};
  sched::PlanSimulationOptions options{.steps = 16, .max_spans = int64_t{1} << 24};
  options.links = &links;
  options.count_memory = false;
  MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation simulated, sched::SimulatePlan(plan, problem.profile(), options));
  const size_t devices = simulated.program.devices.size();
  std::vector<double> computes(devices, 0);
  std::vector<std::vector<std::pair<double, double>>> moves(devices);
  for (const sched::Span& span : simulated.simulation.spans) {
    const program::List& list = simulated.program.lists[static_cast<size_t>(span.list)];
    const auto device = static_cast<size_t>(list.device);
    if (list.kind == program::ListKind::kCompute) computes[device] += span.end - span.start;
    const bool moving = list.kind == program::ListKind::kCollective || list.kind == program::ListKind::kSend ||
                        list.kind == program::ListKind::kReceive;
    if (moving && span.end > span.start) moves[device].emplace_back(span.start, span.end);
  }
  Busy out{simulated.simulation.seconds_per_step, std::ranges::max(computes) / sched::kTimelineSteps, 0};
  for (std::vector<std::pair<double, double>>& spans : moves) {
    std::ranges::sort(spans);
    double sum = 0, until = 0;
    for (const auto& [start, end] : spans) {
      sum += std::max(0.0, end - std::max(start, until));
      until = std::max(until, end);
    }
    out.communicates = std::max(out.communicates, sum / sched::kTimelineSteps);
  }
  return out;
}

}  // namespace medley::reproductions::heterog

#include "scheduler-service/simulate/plan_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "common/program/compile.h"
#include "scheduler-service/simulate/agreeing_part.h"
#include "scheduler-service/simulate/profile_quotas.h"
#include "scheduler-service/simulate/profile_tables.h"
#include "scheduler-service/simulate/rank.h"

namespace medley::sched {
namespace {

constexpr int kPhases = 8;                        // of the periods of CPU quotas
constexpr int64_t kMostInstructions = 2'000'000;  // executed for other phases than the first

// Replaces the seconds of a step by the mean over several phases of the devices' quotas. The timeline is that of the
// first.
absl::Status AverageOverPhases(const program::Program& program, Durations& durations, SimulationOptions options,
                               Simulation& simulation) {
  if (!HasQuota(durations)) return absl::OkStatus();
  options.max_spans = 0;
  double sum = simulation.seconds_per_step;
  int phases = 1;
  for (int64_t executed = simulation.instructions; phases < kPhases && executed < kMostInstructions; ++phases) {
    DrawPhases(phases, durations);
    MEDLEY_ASSIGN_OR_RETURN(const Simulation other, Simulate(program, durations, options));
    sum += other.seconds_per_step;
    executed += other.instructions;
  }
  simulation.seconds_per_step = sum / phases;
  return absl::OkStatus();
}

// Enough steps to see several periods of the longest quota, which a device begins with none of it used up.
int StepsToSee(const Durations& durations, const program::Program& program, double seconds_per_step) {
  constexpr double kPeriods = 5;
  double longest = 0;
  for (const Durations::Quota& quota : durations.quotas) longest = std::max(longest, quota.period);
  if (longest <= 0 || seconds_per_step <= 0) return 0;
  const double most = static_cast<double>(kMostInstructions) / kPhases /
                      static_cast<double>(std::max<size_t>(1, program.instructions.size()));
  return static_cast<int>(std::min(most, std::ceil(kPeriods * longest / seconds_per_step)));
}

// Several agreements, so that a step's mean seconds have their part of them.
int StepsToSee(double part) {
  constexpr int kAgreements = 4, kMost = 400;
  return static_cast<int>(std::min<double>(kMost, std::ceil(kAgreements / part))) + kAgreements;
}

}  // namespace

double PlanSimulation::throughput() const {
  return simulation.seconds_per_step > 0 ? samples / simulation.seconds_per_step : 0;
}

double PlanSimulation::computes(size_t device) const {
  return simulation.total_seconds > 0 ? simulation.busy[device] / simulation.total_seconds : 0;
}

absl::StatusOr<PlanSimulation> SimulatePlan(model::ExecutionPlan plan, const model::Profile& profile,
                                            const PlanSimulationOptions& options) {
  if (HasTablesOnDevice(plan)) {
    const model::Profile changed = ForTables(profile, plan);
    for (model::Stage& stage : plan.stages) stage.tables = {};
    return SimulatePlan(std::move(plan), changed, options);
  }
  PlanSimulation out;
  out.samples = options.samples > 0 ? options.samples : profile.profile_batch_size;
  if (options.rank) {
    // Ranks look at every replica of every operation, so a plan that is too large must be refused before.
    MEDLEY_RETURN_IF_ERROR(program::Compile(plan, profile.model, options.max_instructions).status());
    MEDLEY_ASSIGN_OR_RETURN(out.order, RankOrder(plan, profile, out.samples, options.links));
    plan.order = out.order;
  }
  MEDLEY_ASSIGN_OR_RETURN(out.program, program::Compile(plan, profile.model, options.max_instructions));
  if (options.stop.stop_requested()) return base::Cancelled("simulating was stopped");
  MEDLEY_ASSIGN_OR_RETURN(Durations durations,
                          options.links == nullptr
                              ? DurationsFromProfile(out.program, profile, out.samples)
                              : DurationsFromProfile(out.program, profile, out.samples, *options.links));
  for (Durations::Quota& quota : durations.quotas) {
    if (quota.period <= 0 || options.quota_period_seconds <= 0) continue;
    quota.seconds *= options.quota_period_seconds / quota.period;
    quota.period = options.quota_period_seconds;
  }
  if (options.bound) {
    MEDLEY_ASSIGN_OR_RETURN(out.bound, BoundOfProgram(out.program, durations, out.samples));
  }
  SimulationOptions simulation{.samples = out.samples, .steps = options.steps, .stop = options.stop};
  if (const double part = AgreeingPart(out.program, durations, out.samples); part > 0 && part < 1) {
    simulation.steps = std::max(simulation.steps, StepsToSee(part));
  }
  simulation.max_spans = options.max_spans;
  simulation.first_span_step = std::max(0, simulation.steps - kTimelineSteps);
  MEDLEY_ASSIGN_OR_RETURN(out.simulation, Simulate(out.program, durations, simulation));
  if (const int steps = StepsToSee(durations, out.program, out.simulation.seconds_per_step); steps > simulation.steps) {
    simulation.steps = steps;
    simulation.first_span_step = std::max(0, steps - kTimelineSteps);
    MEDLEY_ASSIGN_OR_RETURN(out.simulation, Simulate(out.program, durations, simulation));
  }
  MEDLEY_RETURN_IF_ERROR(AverageOverPhases(out.program, durations, simulation, out.simulation));
  if (options.count_memory) {
    out.memory = program::CountMemory(out.program, profile.model,
                                      {out.samples, profile.state_factor, plan.schedule.without_undo});
  }
  return out;
}

}  // namespace medley::sched

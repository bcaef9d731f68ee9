// How close the simulator comes to measured steps: models x plans on two pools of unlike CPU quotas.
//
//   step_time_bench [--models mlp,residual,ctrdnn] [--plan NAME]... [--rounds 3] [--seconds 8] [--big 0.7]
//                   [--small 0.35] [--period-ms 100] [--planners hierarchy,exact,...]
//
// With --planners it measures instead the plans that these make for the goal step time on two units of each pool, as
// for a job with spec.objective.fastest; those of NAME/async with the asynchronous schedule.
//
// tests/bench/step_times.h says how it measures. Prints one line of JSON.
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "tests/bench/planned_steps.h"
#include "tests/bench/step_times.h"

namespace medley::bench {
namespace {

// The stages are divided behind operation `cut`. Embedding rows are on a server where a stage that has them has
// replicas.
std::vector<NamedShape> Shapes(int operations, int cut, bool tables) {
  const auto pipeline = [&](int first, int second, plan::v1::ScheduleKind schedule) {
    return worker::JobShape{
        .stages = {{.end = cut, .units = first, .pool = first > 1 ? kSmall : kBig},
                   {.first = cut, .end = operations, .units = second, .pool = first > 1 ? kBig : kSmall}},
        .servers = tables && first > 1 ? 1 : 0,
        .micro_batches = kStepMicroBatches,
        .schedule = schedule};
  };
  const auto replicas = [&](const char* pool, int units) {
    return worker::JobShape{.stages = {{.end = operations, .units = units, .pool = pool}},
                            .servers = tables && units > 1 ? 1 : 0,
                            .micro_batches = 1};
  };
  worker::JobShape served = replicas(kBig, 1);
  served.servers = 1;
  return {{"one big", replicas(kBig, 1)},
          {"one small", replicas(kSmall, 1)},
          {"two big, allreduce", replicas(kBig, 2)},
          {"big | small, 1F1B", pipeline(1, 1, plan::v1::SCHEDULE_KIND_SYNC_1F1B)},
          {"2 small | big, GPipe", pipeline(2, 1, plan::v1::SCHEDULE_KIND_GPIPE)},
          tables ? NamedShape{"one big and a server", served}
                 : NamedShape{"big | small, asynchronous", pipeline(1, 1, plan::v1::SCHEDULE_KIND_ASYNC_1F1B)}};
}

absl::StatusOr<NamedShape> PlannedShape(const model::Profile& profile, const std::string& planner) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, AskForTwoPools(profile, planner));
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, PlanSteps(request));
  return Named(planner, plan);
}

absl::Status Measure(const StepTimeSettings& settings, const std::string& planners) {
  return MeasureStepTimes(
      settings,
      [&](const model::Profile& profile, const worker::JobOptions& options) -> absl::StatusOr<std::vector<NamedShape>> {
        const int operations = static_cast<int>(profile.model.layers.size());
        if (planners.empty()) return Shapes(operations, operations / 2, !options.tables.empty());
        std::vector<NamedShape> shapes;
        for (const std::string& planner : std::vector<std::string>(absl::StrSplit(planners, ',', absl::SkipEmpty()))) {
          MEDLEY_ASSIGN_OR_RETURN(shapes.emplace_back(), PlannedShape(profile, planner));
        }
        return shapes;
      });
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  medley::bench::StepTimeSettings settings;
  std::string planners;
  CLI::App app("Simulated and measured seconds of a step on pools of unlike CPU quotas");
  medley::bench::AddStepTimeOptions(app, settings);
  app.add_option("--planners", planners, "of step time, with commas between them");
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest();  // the harness reports its failures to it
  const absl::Status status = medley::bench::Measure(settings, planners);
  if (status.ok()) return 0;
  std::fprintf(stderr, "step_time_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}

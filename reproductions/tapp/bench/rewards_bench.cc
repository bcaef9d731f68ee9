// The planner `tapp` by rewards from real processes: TAPP, section 4.3, measures each plan on the cluster.
//
//   rewards_bench [--rewards 30] [--models mlp] [--plan NAME]... [--rounds 3] [--seconds 8] [--big 0.7] [--small 0.35]
//                 [--period-ms 100]
//
// In the first round of a model `tapp` plans with N rewards from trainers under quotas, with as many from the
// simulator, and with 4,000 from the simulator. The three plans are then measured as step_time_bench measures plans
// (tests/bench/step_times.h). Prints one line of JSON. docs/adr/0032 has the figures.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "reproductions/tapp/tapp_planner.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/bench/planned_steps.h"
#include "tests/bench/step_times.h"

namespace medley::reproductions::tapp {
namespace {

// As the paper measures: 20 steps, the mean of the last 10.
absl::StatusOr<double> MeasureReward(const worker::JobOptions& options, const model::ExecutionPlan& plan) {
  worker::JobHarness job(options);
  return bench::MeasureSteps(job, bench::ShapeOf(plan), 10, 10, base::seconds(5));
}

// The plans of tapp by rewards from real processes, and by rewards from the simulator.
absl::StatusOr<std::vector<bench::NamedShape>> RewardedShapes(const model::Profile& profile,
                                                              const worker::JobOptions& options, int rewards) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, bench::AskForTwoPools(profile, "tapp/async"));
  MEDLEY_ASSIGN_OR_RETURN(const sched::DeviceProblem problem, sched::DeviceProblem::Compile(request));
  const base::SystemClock clock;
  std::vector<double> ratios;  // measured over simulated
  sched::DeviceSimulator simulator(problem, {});
  const auto measure = [&](const model::ExecutionPlan& plan) -> absl::StatusOr<double> {
    MEDLEY_ASSIGN_OR_RETURN(const double seconds, MeasureReward(options, plan));
    MEDLEY_ASSIGN_OR_RETURN(const double simulated, simulator.Seconds(plan));
    ratios.push_back(seconds / simulated);
    return seconds;
  };
  std::vector<bench::NamedShape> shapes;
  const auto solve = [&](const std::string& name, int64_t calls, sched::Measure how) -> absl::Status {
    const auto planner = MakeTapp({.draws_a_round = std::min<int>(20, static_cast<int>(calls) / 6), .calls = calls});
    const base::SteadyTime begin = clock.Steady();
    const sched::Question question(problem);
    const auto judge = how ? sched::MakeMeasurement(question, std::move(how), {}) : sched::MakeSimulator(question, {});
    MEDLEY_ASSIGN_OR_RETURN(const sched::Candidate solution,
                            planner->Solve(question, *judge, 1, {clock, base::SteadyTime::max(), {}}));
    if (!solution.plan) return base::FailedPrecondition("{}: no plan", name);
    std::fprintf(stderr, "%s: %lld rewards in %.1f s\n", name.c_str(), static_cast<long long>(solution.judged),
                 base::ToSeconds(clock.Steady() - begin));
    shapes.push_back(bench::Named(name, *solution.plan));
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(solve("measured rewards", rewards, measure));
  std::ranges::sort(ratios);
  std::fprintf(stderr, "measured over simulated: %.2f to %.2f, median %.2f\n", ratios.front(), ratios.back(),
               ratios[ratios.size() / 2]);
  MEDLEY_RETURN_IF_ERROR(solve("as many simulated rewards", rewards, {}));
  MEDLEY_RETURN_IF_ERROR(solve("4,000 simulated rewards", 4000, {}));
  return shapes;
}

absl::Status Measure(const bench::StepTimeSettings& settings, int rewards) {
  std::map<std::string, std::vector<bench::NamedShape>> planned;  // by model, in its first round
  return bench::MeasureStepTimes(
      settings,
      [&](const model::Profile& profile,
          const worker::JobOptions& options) -> absl::StatusOr<std::vector<bench::NamedShape>> {
        std::vector<bench::NamedShape>& shapes = planned[options.model];
        if (shapes.empty()) {
          MEDLEY_ASSIGN_OR_RETURN(shapes, RewardedShapes(profile, options, rewards));
        }
        return shapes;
      });
}

}  // namespace
}  // namespace medley::reproductions::tapp

int main(int argc, char** argv) {
  medley::bench::StepTimeSettings settings;
  settings.models = "mlp";
  int rewards = 30;
  CLI::App app("Plans of tapp by rewards from real processes and from the simulator, measured");
  medley::bench::AddStepTimeOptions(app, settings);
  app.add_option("--rewards", rewards, "from real processes, at least 6")
      ->check(CLI::Range(6, 10'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest();  // the harness reports its failures to it
  const absl::Status status = medley::reproductions::tapp::Measure(settings, rewards);
  if (status.ok()) return 0;
  std::fprintf(stderr, "rewards_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}

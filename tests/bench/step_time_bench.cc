// How close the simulator comes to measured steps: models x plans on two pools of unlike CPU quotas.
//
//   step_time_bench [--models mlp,residual,ctrdnn] [--plan NAME]... [--rounds 3] [--seconds 8] [--big 0.7]
//                   [--small 0.35] [--period-ms 100] [--planners hierarchy,exact,...]
//
// With --planners it measures instead the plans that these make for the goal step time on two units of each pool, as
// for a job with spec.objective.fastest; those of NAME/async with the asynchronous schedule.
//
// Each pool's profile is measured by a profiler process under the pool's quota, as the operator does it. Then each plan
// trains with worker processes under their pools' quotas (cgroups), and is simulated from the profiles alone. That is
// repeated `--rounds` times. Prints one line of JSON: seconds of a step, measured between two observations of the
// coordinator, and simulated, both as medians of the rounds; and the median and the largest error of all plans.
#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "localcluster/node/proc_stat.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "scheduler-service/step_time/evaluator.h"
#include "scheduler-service/tapp/tapp_planner.h"
#include "tests/bench/planned_steps.h"
#include "tests/bench/pool_quotas.h"
#include "tests/integration/worker/job_harness.h"
#include "worker/profiler/statistics.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
constexpr int kWarmUpSteps = 30;
constexpr int kBatch = 512;
constexpr int kMicroBatches = 4;
constexpr char kNumericColumns[] = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
constexpr char kBig[] = "big";
constexpr char kSmall[] = "small";

struct Settings {
  std::string models = "mlp,residual,ctrdnn";
  std::vector<std::string> plans;  // all unless given
  int rounds = 3;
  int seconds = 8;
  std::string planners;
  int rewards = 0;
  double big = 0.7;
  double small = 0.35;
  int period_ms = 100;
};

struct NamedShape {
  std::string name;
  JobShape shape;
};

// The stages are divided behind operation `cut`. Embedding rows are on a server where a stage that has them has
// replicas.
std::vector<NamedShape> Shapes(int operations, int cut, bool tables) {
  const auto pipeline = [&](int first, int second, plan::v1::ScheduleKind schedule) {
    return JobShape{.stages = {{.end = cut, .units = first, .pool = first > 1 ? kSmall : kBig},
                               {.first = cut, .end = operations, .units = second, .pool = first > 1 ? kBig : kSmall}},
                    .servers = tables && first > 1 ? 1 : 0,
                    .micro_batches = kMicroBatches,
                    .schedule = schedule};
  };
  const auto replicas = [&](const char* pool, int units) {
    return JobShape{.stages = {{.end = operations, .units = units, .pool = pool}},
                    .servers = tables && units > 1 ? 1 : 0,
                    .micro_batches = 1};
  };
  JobShape served = replicas(kBig, 1);
  served.servers = 1;
  return {{"one big", replicas(kBig, 1)},
          {"one small", replicas(kSmall, 1)},
          {"two big, allreduce", replicas(kBig, 2)},
          {"big | small, 1F1B", pipeline(1, 1, plan::v1::SCHEDULE_KIND_SYNC_1F1B)},
          {"2 small | big, GPipe", pipeline(2, 1, plan::v1::SCHEDULE_KIND_GPIPE)},
          tables ? NamedShape{"one big and a server", served}
                 : NamedShape{"big | small, asynchronous", pipeline(1, 1, plan::v1::SCHEDULE_KIND_ASYNC_1F1B)}};
}

absl::StatusOr<model::PlanRequest> Ask(const model::Profile& profile, const std::string& planner) {
  return bench::AskAsOperator(profile, {planner, kBatch, kMicroBatches, {{kBig, 2}, {kSmall, 2}}});
}

NamedShape Named(const std::string& name, const model::ExecutionPlan& plan) {
  std::fprintf(stderr, "%s:%s\n", name.c_str(), bench::PlacementsText(plan).c_str());
  return {name, bench::ShapeOf(plan)};
}

absl::StatusOr<NamedShape> PlannedShape(const model::Profile& profile, const std::string& planner) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Ask(profile, planner));
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, bench::PlanSteps(request));
  return Named(planner, plan);
}

JobOptions OptionsOf(const std::string& model) {
  JobOptions options;
  options.share_memory = false;  // as pods on different machines
  options.train = ExampleData("adult.train.csv");
  options.model = model;
  options.tables = model == "ctrdnn" ? std::set<int>{0} : std::set<int>{};
  if (model != "ctrdnn") options.schema = kNumericColumns;  // no embedding tables
  options.hidden = {512, 512, 512};
  options.embedding_dim = 16;
  options.embedding_rows = 65536;
  options.epochs = 100000;  // so that the job does not finish during the measurement
  options.batch_size = kBatch;
  return options;
}

// Those that a job has started, with their pools.
using Processes = std::vector<std::pair<std::string, pid_t>>;

// Processor time by pool, of its trainers and servers.
std::map<std::string, double> ProcessorSeconds(const Processes& processes) {
  std::map<std::string, double> seconds;
  for (const auto& [pool, process] : processes) {
    const auto stat = kube::ReadProcStat(process);
    if (stat && (pool == kBig || pool == kSmall)) seconds[pool] += base::ToSeconds(stat->cpu);
  }
  return seconds;
}

// Of one step.
struct MeasuredStep {
  double seconds = 0;
  std::map<std::string, double> processors;  // seconds by pool
};

// Between two observations.
absl::StatusOr<MeasuredStep> MeasureStep(JobHarness& job, const JobShape& shape, int for_seconds,
                                         const Processes& processes) {
  job.StartCoordinator();
  job.Apply(shape, "bench");
  job.WaitFor([](const pb::Observation& o) { return o.step() >= kWarmUpSteps; }, base::seconds(120));
  base::SystemClock clock;
  const pb::Observation first = job.Observe();
  const std::map<std::string, double> before = ProcessorSeconds(processes);
  const base::SteadyTime begin = clock.Steady();
  clock.SleepFor(base::seconds(for_seconds), {});
  const pb::Observation last = job.Observe();
  const double seconds = base::ToSeconds(clock.Steady() - begin);
  MeasuredStep step{.seconds = seconds, .processors = ProcessorSeconds(processes)};
  if (testing::Test::HasFailure() || last.phase() != pb::JOB_PHASE_TRAINING || last.restarts() > 0) {
    return base::FailedPrecondition("not a steady run: {}{}", last.ShortDebugString(), job.AllLogs());
  }
  const auto steps = static_cast<double>(std::max<int64_t>(1, last.step() - first.step()));
  step.seconds /= steps;
  for (auto& [pool, processor] : step.processors) processor = (processor - before.at(pool)) / steps;
  return step;
}

// As the paper measures: 20 steps, the mean of the last 10.
absl::StatusOr<double> MeasureReward(const JobOptions& options, const model::ExecutionPlan& plan) {
  JobHarness job(options);
  return bench::MeasureSteps(job, bench::ShapeOf(plan), 10, 10, base::seconds(5));
}

// The plans of tapp by rewards from real processes, and by rewards from the simulator.
absl::StatusOr<std::vector<NamedShape>> RewardedShapes(const model::Profile& profile, const JobOptions& options,
                                                       int rewards) {
  MEDLEY_ASSIGN_OR_RETURN(const model::PlanRequest request, Ask(profile, "tapp/async"));
  MEDLEY_ASSIGN_OR_RETURN(const sched::StepTimeProblem problem, sched::StepTimeProblem::Compile(request));
  const base::SystemClock clock;
  std::vector<double> ratios;  // measured over simulated
  sched::StepTimeEvaluator simulator(problem, {});
  const auto measure = [&](const model::ExecutionPlan& plan) -> absl::StatusOr<double> {
    MEDLEY_ASSIGN_OR_RETURN(const double seconds, MeasureReward(options, plan));
    MEDLEY_ASSIGN_OR_RETURN(const double simulated, simulator.Seconds(plan));
    ratios.push_back(seconds / simulated);
    return seconds;
  };
  std::vector<NamedShape> shapes;
  const auto solve = [&](const std::string& name, int64_t calls, sched::SearchLimits::Measure how) -> absl::Status {
    const auto planner =
        sched::MakeTapp({.draws_a_round = std::min<int>(20, static_cast<int>(calls) / 6), .calls = calls});
    const base::SteadyTime begin = clock.Steady();
    MEDLEY_ASSIGN_OR_RETURN(const sched::StepTimeSolution solution,
                            planner->Solve(problem, 1, {clock, base::SteadyTime::max(), {}, {}, std::move(how)}));
    if (!solution.best) return base::FailedPrecondition("{}: no plan", name);
    std::fprintf(stderr, "%s: %lld rewards in %.1f s\n", name.c_str(), static_cast<long long>(solution.simulated),
                 base::ToSeconds(clock.Steady() - begin));
    shapes.push_back(Named(name, *solution.best));
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

// By round.
struct Seconds {
  std::vector<double> measured, simulated;
};

// Measures the profile and all wanted plans of a model once more.
// `rewarded`: the shapes of RewardedShapes, made in the first round.
absl::Status MeasureRound(const Settings& settings, const JobOptions& options, Processes& processes,
                          std::vector<NamedShape>& rewarded, std::vector<std::pair<std::string, Seconds>>& plans) {
  model::Profile profile;
  {
    JobHarness job(options);
    MEDLEY_ASSIGN_OR_RETURN(profile, bench::MeasureProfiles(job, {kBig, kSmall}));
  }
  for (const model::Link& link : profile.links) {
    std::fprintf(stderr, "link %s - %s: %.0f us, %.0f MB/s; of a processor %.0f us and %.0f us/MB\n", link.from.c_str(),
                 link.to.c_str(), 1e6 * link.latency_seconds, link.bytes_per_second / 1e6,
                 1e6 * link.processor_seconds_per_message, 1e12 * link.processor_seconds_per_byte);
  }
  const int operations = static_cast<int>(profile.model.layers.size());
  std::vector<NamedShape> shapes;
  if (settings.rewards > 0 && rewarded.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(rewarded, RewardedShapes(profile, options, settings.rewards));
  }
  shapes = rewarded;
  if (settings.planners.empty() && rewarded.empty())
    shapes = Shapes(operations, operations / 2, !options.tables.empty());
  for (const std::string& planner :
       std::vector<std::string>(absl::StrSplit(settings.planners, ',', absl::SkipEmpty()))) {
    MEDLEY_ASSIGN_OR_RETURN(shapes.emplace_back(), PlannedShape(profile, planner));
  }
  for (const auto& [plan, shape] : shapes) {
    if (!settings.plans.empty() && std::ranges::find(settings.plans, plan) == settings.plans.end()) continue;
    processes.clear();
    JobHarness job(options);
    MEDLEY_ASSIGN_OR_RETURN(const MeasuredStep step, MeasureStep(job, shape, settings.seconds, processes));
    const double measured = step.seconds;
    MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan execution, model::FromProto(job.plan()));
    MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation simulated,
                            sched::SimulatePlan(execution, profile, {.samples = kBatch, .steps = 200}));
    const double predicted = simulated.simulation.seconds_per_step;
    std::fprintf(stderr, "%-9s %-26s measured %7.2f ms, simulated %7.2f ms, %+.1f %%\n", options.model.c_str(),
                 plan.c_str(), 1e3 * measured, 1e3 * predicted, 100 * (predicted / measured - 1));
    for (const auto& [pool, processor] : step.processors) {
      double computes = 0;
      for (size_t d = 0; d < execution.devices.size(); ++d) {
        if (execution.devices[d].pool == pool) computes += simulated.computes(d) * predicted;
      }
      std::fprintf(stderr, "  processors of %s: %.2f ms a step, computation of the simulator %.2f ms\n", pool.c_str(),
                   1e3 * processor, 1e3 * computes);
    }
    auto found = std::ranges::find(plans, plan, &std::pair<std::string, Seconds>::first);
    if (found == plans.end()) found = plans.insert(found, {plan, {}});
    found->second.measured.push_back(measured);
    found->second.simulated.push_back(predicted);
  }
  return absl::OkStatus();
}

absl::Status Measure(const Settings& settings) {
  base::SystemClock clock;
  bench::PoolQuotas quotas({{kBig, settings.big}, {kSmall, settings.small}}, base::milliseconds(settings.period_ms),
                           clock);
  MEDLEY_RETURN_IF_ERROR(quotas.status());
  Processes processes;
  const auto place = [&](const std::string& pool, pid_t process) {
    quotas.Place(pool, process);
    processes.emplace_back(pool, process);
  };
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::vector<double> errors;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(settings.models, ','))) {
    JobOptions options = OptionsOf(name);
    options.place = place;
    std::vector<std::pair<std::string, Seconds>> plans;
    std::vector<NamedShape> rewarded;
    for (int round = 0; round < settings.rounds; ++round) {
      MEDLEY_RETURN_IF_ERROR(MeasureRound(settings, options, processes, rewarded, plans));
      quotas.Clear();
    }
    for (const auto& [plan, seconds] : plans) {
      const double measured = Median(seconds.measured), simulated = Median(seconds.simulated);
      errors.push_back(std::abs(simulated / measured - 1));
      rows.push_back({{"model", name}, {"plan", plan}, {"measuredSeconds", measured}, {"simulatedSeconds", simulated}});
    }
  }
  if (errors.empty()) return base::InvalidArgument("--plan: no plan has this name");
  const nlohmann::ordered_json out = {
      {"rows", rows}, {"medianError", Median(errors)}, {"maxError", std::ranges::max(errors)}};
  std::printf("%s\n", out.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::Settings settings;
  CLI::App app("Simulated and measured seconds of a step on pools of unlike CPU quotas");
  app.add_option("--models", settings.models, "names, with commas between them")->capture_default_str();
  app.add_option("--plan", settings.plans, "a name of the output; all unless given");
  app.add_option("--planners", settings.planners, "of step time, with commas between them");
  app.add_option("--rewards", settings.rewards, "of tapp from real processes, at least 6")
      ->check(CLI::Range(6, 10'000));
  app.add_option("--rounds", settings.rounds, "of profiles and plans")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--big", settings.big, "cores of a unit")->check(CLI::Range(0.05, 64.0))->capture_default_str();
  app.add_option("--small", settings.small, "cores of a unit")->check(CLI::Range(0.05, 64.0))->capture_default_str();
  app.add_option("--period-ms", settings.period_ms, "of the quota")->check(CLI::Range(1, 1000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest();  // the harness reports its failures to it
  const absl::Status status = medley::worker::Measure(settings);
  if (status.ok()) return 0;
  std::fprintf(stderr, "step_time_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}

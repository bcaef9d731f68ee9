#include "tests/bench/step_times.h"

#include <absl/strings/str_split.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "localcluster/node/proc_stat.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "tests/bench/planned_steps.h"
#include "tests/bench/pool_quotas.h"
#include "worker/profiler/statistics.h"

namespace medley::bench {
namespace {

namespace pb = ::medley::job::v1;
using worker::JobHarness;
using worker::JobOptions;
using worker::JobShape;

constexpr int kWarmUpSteps = 30;
constexpr char kNumericColumns[] = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";

JobOptions OptionsOf(const std::string& model) {
  JobOptions options;
  options.share_memory = false;  // as pods on different machines
  options.train = worker::ExampleData("adult.train.csv");
  options.model = model;
  options.tables = model == "ctrdnn" ? std::set<int>{0} : std::set<int>{};
  if (model != "ctrdnn") options.schema = kNumericColumns;  // no embedding tables
  options.hidden = {512, 512, 512};
  options.embedding_dim = 16;
  options.embedding_rows = 65536;
  options.epochs = 100000;  // so that the job does not finish during the measurement
  options.batch_size = kStepBatch;
  return options;
}

// Those that a job has started, with their pools.
using Processes = std::vector<std::pair<std::string, pid_t>>;

// Processor time by pool, of its trainers and servers.
std::map<std::string, double> ProcessorSeconds(const Processes& processes) {
  std::map<std::string, double> seconds;
  for (const auto& [pool, process] : processes) {
    const auto stat = localcluster::ReadProcStat(process);
    if (stat && (pool == kBig || pool == kSmall)) seconds[pool] += base::ToSeconds(stat->cpu);
  }
  return seconds;
}

// For one step.
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

// By round.
struct Seconds {
  std::vector<double> measured, simulated;
};

// Measures the profile and all wanted plans of a model once more.
absl::Status MeasureRound(const StepTimeSettings& settings, const JobOptions& options, const ShapesOf& shapes_of,
                          Processes& processes, std::vector<std::pair<std::string, Seconds>>& plans) {
  model::Profile profile;
  {
    JobHarness job(options);
    MEDLEY_ASSIGN_OR_RETURN(profile, MeasureProfiles(job, {kBig, kSmall}));
  }
  for (const model::Link& link : profile.links) {
    std::fprintf(stderr, "link %s - %s: %.0f us, %.0f MB/s; of a processor %.0f us and %.0f us/MB\n", link.from.c_str(),
                 link.to.c_str(), 1e6 * link.latency_seconds, link.bytes_per_second / 1e6,
                 1e6 * link.processor_seconds_per_message, 1e12 * link.processor_seconds_per_byte);
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<NamedShape> shapes, shapes_of(profile, options));
  for (const auto& [plan, shape] : shapes) {
    if (!settings.plans.empty() && std::ranges::find(settings.plans, plan) == settings.plans.end()) continue;
    processes.clear();
    JobHarness job(options);
    MEDLEY_ASSIGN_OR_RETURN(const MeasuredStep step, MeasureStep(job, shape, settings.seconds, processes));
    const double measured = step.seconds;
    MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan execution, model::FromProto(job.plan()));
    MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation simulated,
                            sched::SimulatePlan(execution, profile, {.samples = kStepBatch, .steps = 200}));
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

}  // namespace

NamedShape Named(const std::string& name, const model::ExecutionPlan& plan) {
  std::fprintf(stderr, "%s:%s\n", name.c_str(), PlacementsText(plan).c_str());
  return {name, ShapeOf(plan)};
}

absl::StatusOr<model::PlanRequest> AskForTwoPools(const model::Profile& profile, const std::string& planner) {
  return AskAsOperator(profile, {planner, kStepBatch, kStepMicroBatches, {{kBig, 2}, {kSmall, 2}}});
}

void AddStepTimeOptions(CLI::App& app, StepTimeSettings& settings) {
  app.add_option("--models", settings.models, "names, with commas between them")->capture_default_str();
  app.add_option("--plan", settings.plans, "a name of the output; all unless given");
  app.add_option("--rounds", settings.rounds, "of profiles and plans")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--big", settings.big, "cores of a unit")->check(CLI::Range(0.05, 64.0))->capture_default_str();
  app.add_option("--small", settings.small, "cores of a unit")->check(CLI::Range(0.05, 64.0))->capture_default_str();
  app.add_option("--period-ms", settings.period_ms, "of the quota")->check(CLI::Range(1, 1000))->capture_default_str();
}

absl::Status MeasureStepTimes(const StepTimeSettings& settings, const ShapesOf& shapes_of) {
  base::SystemClock clock;
  PoolQuotas quotas({{kBig, settings.big}, {kSmall, settings.small}}, base::milliseconds(settings.period_ms), clock);
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
    for (int round = 0; round < settings.rounds; ++round) {
      MEDLEY_RETURN_IF_ERROR(MeasureRound(settings, options, shapes_of, processes, plans));
      quotas.Clear();
    }
    for (const auto& [plan, seconds] : plans) {
      const double measured = worker::Median(seconds.measured), simulated = worker::Median(seconds.simulated);
      errors.push_back(std::abs(simulated / measured - 1));
      rows.push_back({{"model", name}, {"plan", plan}, {"measuredSeconds", measured}, {"simulatedSeconds", simulated}});
    }
  }
  if (errors.empty()) return base::InvalidArgument("--plan: no plan has this name");
  const nlohmann::ordered_json out = {
      {"rows", rows}, {"medianError", worker::Median(errors)}, {"maxError", std::ranges::max(errors)}};
  std::printf("%s\n", out.dump().c_str());
  return absl::OkStatus();
}

}  // namespace medley::bench

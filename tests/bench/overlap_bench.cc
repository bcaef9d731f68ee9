// How much of its reductions a real run hides behind the backward pass, compared with the simulated timeline.
//
//   overlap_bench [--rounds 5] [--seconds 4] [--batch 1024] [--width 768] [--megabits 800] [--bucket-bytes 2500000]
//
// Two trainers add the gradients of four dense layers over a loopback device of their own network namespace, which
// sends no more than `--megabits` a second in both directions together: a reduction mostly waits. Two plans train in
// turn: one reduction after the backward pass, and one for each bucket of `--bucket-bytes` as soon as it is complete.
// The difference of their steps is what is hidden. The same difference is simulated with the profile of the model,
// whose computation is scaled to what the trainers report of the first plan, and the known link. Prints one line of
// JSON. Needs root (unshare, ip, tc).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <cerrno>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/profile.h"
#include "operator/records/profile_store.h"
#include "scheduler-service/simulate/plan_simulation.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
constexpr int kWarmUpSteps = 15;
constexpr int kReplicas = 2;
constexpr int kSimulatedSteps = 20;
constexpr char kNumericColumns[] = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";

struct Settings {
  int rounds = 5;
  int seconds = 4;
  int batch = 1024;
  int width = 768;
  int megabits = 800;
  int64_t bucket_bytes = 2'500'000;
};

struct StepTime {
  double seconds = 0;
  double compute_seconds = 0;  // of it, as the trainers report
};

// Moves this process and its children into a network namespace of its own, in which only the loopback device is.
absl::Status EnterNamespace() {
  if (unshare(CLONE_NEWNET) != 0) return base::ErrnoStatus(errno, "cannot create a network namespace");
  if (std::system("ip link set lo up") != 0) return base::Internal("'ip link set lo up' failed");
  return absl::OkStatus();
}

// A queue that drops nothing: all bytes of a step fit in it.
absl::Status SlowLoopback(int megabits) {
  const std::string command =
      fmt::format("tc qdisc replace dev lo root tbf rate {}mbit burst 256kb limit 256mb", megabits);
  if (std::system(command.c_str()) != 0) return base::Internal("'{}' failed", command);
  return absl::OkStatus();
}

JobShape Shape(int operations, int64_t bucket_bytes) {
  return {.stages = {{.end = operations, .units = kReplicas}},
          .servers = 0,
          .micro_batches = 1,
          .bucket_bytes = bucket_bytes};
}

absl::StatusOr<StepTime> MeasureShape(JobHarness& job, const JobShape& shape, const Settings& settings) {
  const int64_t before = job.Observe().step();
  job.Apply(shape, "bench");
  const int64_t generation = job.plan().generation();
  job.WaitFor(
      [&](const pb::Observation& o) {
        return o.generation() >= generation && o.phase() == pb::JOB_PHASE_TRAINING && o.step() >= before + kWarmUpSteps;
      },
      base::seconds(120));
  base::SystemClock clock;
  const pb::Observation first = job.Observe();
  const base::SteadyTime begin = clock.Steady();
  clock.SleepFor(base::seconds(settings.seconds), {});
  const pb::Observation last = job.Observe();
  const double seconds = base::ToSeconds(clock.Steady() - begin);
  if (testing::Test::HasFailure() || last.phase() != pb::JOB_PHASE_TRAINING || last.restarts() > 0 ||
      last.stages().empty() || last.step() <= first.step()) {
    return base::FailedPrecondition("not a steady run: {}{}", last.ShortDebugString(), job.AllLogs());
  }
  return StepTime{seconds / static_cast<double>(last.step() - first.step()), last.stages(0).compute_seconds()};
}

double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The simulated seconds of a step of both plans, in which computing one takes `compute_seconds`.
absl::StatusOr<std::pair<double, double>> Simulated(
    const std::pair<plan::v1::ExecutionPlan, plan::v1::ExecutionPlan>& plans, model::Profile profile,
    const Settings& settings, double compute_seconds) {
  const std::string pool = profile.model.layers.front().profiles.front().resource_type;
  // Both replicas send all the time while they reduce, so each has half of the device.
  profile.links = {{.from = pool, .to = pool, .bytes_per_second = settings.megabits * 1e6 / 8 / kReplicas}};
  const sched::PlanSimulationOptions options{.samples = settings.batch, .steps = kSimulatedSteps};
  double steps[2] = {};
  for (int plan = 0; plan < 2; ++plan) {
    MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan execution,
                            model::FromProto(plan == 0 ? plans.first : plans.second));
    if (plan == 0) {
      MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation own, sched::SimulatePlan(execution, profile, options));
      const double factor = compute_seconds / (own.simulation.busy.front() / kSimulatedSteps);
      for (model::Layer& layer : profile.model.layers) {
        for (model::LayerProfile& times : layer.profiles) {
          times.compute_seconds *= factor;
          times.burst_seconds *= factor;
          times.undivided_seconds *= factor;
          times.sync_processor_seconds *= factor;
        }
      }
    }
    MEDLEY_ASSIGN_OR_RETURN(const sched::PlanSimulation simulated, sched::SimulatePlan(execution, profile, options));
    steps[plan] = simulated.simulation.seconds_per_step;
  }
  return std::pair(steps[0], steps[1]);
}

absl::Status MeasureOverlap(const Settings& settings) {
  MEDLEY_RETURN_IF_ERROR(EnterNamespace());
  JobOptions options;
  options.share_memory = false;  // as pods on different machines
  options.train = ExampleData("adult.train.csv");
  options.model = "mlp";
  options.tables = {};
  options.schema = kNumericColumns;
  options.hidden = std::vector<int>(4, settings.width);
  options.epochs = 1'000'000;  // so that the job does not finish during the measurement
  options.batch_size = settings.batch;
  JobHarness job(options);
  // The profile does not need the link, which is known.
  MEDLEY_ASSIGN_OR_RETURN(const std::string log, job.RunProfiler("cpu"));
  MEDLEY_ASSIGN_OR_RETURN(const std::string json, ops::ProfileJsonInLog(log));
  MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, ops::ParseProfile(json, "cpu"));
  MEDLEY_RETURN_IF_ERROR(SlowLoopback(settings.megabits));
  const int operations = static_cast<int>(profile.model.layers.size());
  std::vector<double> whole, buckets, compute, hidden;
  std::pair<plan::v1::ExecutionPlan, plan::v1::ExecutionPlan> plans;
  job.StartCoordinator();
  for (int round = 0; round < settings.rounds; ++round) {
    MEDLEY_ASSIGN_OR_RETURN(const StepTime one, MeasureShape(job, Shape(operations, 0), settings));
    plans.first = job.plan();
    MEDLEY_ASSIGN_OR_RETURN(const StepTime many, MeasureShape(job, Shape(operations, settings.bucket_bytes), settings));
    plans.second = job.plan();
    whole.push_back(one.seconds);
    buckets.push_back(many.seconds);
    compute.push_back(one.compute_seconds);
    hidden.push_back(one.seconds - many.seconds);
    std::fprintf(stderr, "one reduction %.1f ms (%.1f ms computing), buckets %.1f ms: %.1f ms hidden\n",
                 1e3 * one.seconds, 1e3 * one.compute_seconds, 1e3 * many.seconds, 1e3 * hidden.back());
  }
  MEDLEY_ASSIGN_OR_RETURN(const auto simulated, Simulated(plans, profile, settings, MedianOf(compute)));
  const double expected = simulated.first - simulated.second;
  if (!(expected > 0)) return base::FailedPrecondition("the simulated timeline hides nothing");
  const nlohmann::ordered_json out = {
      {"wholeSeconds", MedianOf(whole)},          {"bucketsSeconds", MedianOf(buckets)},
      {"computeSeconds", MedianOf(compute)},      {"hiddenSeconds", MedianOf(hidden)},
      {"simulatedWholeSeconds", simulated.first}, {"simulatedBucketsSeconds", simulated.second},
      {"simulatedHiddenSeconds", expected},       {"ratio", MedianOf(hidden) / expected}};
  std::printf("%s\n", out.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::Settings settings;
  CLI::App app("What a real run hides of its reductions, and what the simulated timeline hides");
  app.add_option("--rounds", settings.rounds, "of both plans")->check(CLI::Range(1, 100))->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--batch", settings.batch, "samples of a step")->check(CLI::Range(2, 16384))->capture_default_str();
  app.add_option("--width", settings.width, "of each hidden layer")->check(CLI::Range(8, 4096))->capture_default_str();
  app.add_option("--megabits", settings.megabits, "a second that the loopback device sends")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--bucket-bytes", settings.bucket_bytes, "of the gradients of a reduction")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest();  // the harness reports its failures to it
  const absl::Status status = medley::worker::MeasureOverlap(settings);
  if (status.ok()) return 0;
  std::fprintf(stderr, "overlap_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}

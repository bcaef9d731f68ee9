// How much of the time of reductions a real run hides behind the backward pass, and how much the simulated timeline
// hides. Run it where links are slow: tests/bench/overlap does.
//
//   overlap_bench [--width 768] [--layers 4] [--bucket-kib 1024] [--seconds 6] [--rounds 3]
//
// Two trainers run a model of dense layers, with one bucket for all gradients (nothing is hidden) and with one for each
// layer, in turn. The simulation uses the profile that a profiler measured here, with reductions as two processes'
// connections take them here. Prints one line of JSON: seconds of a step, medians of the rounds, and what is hidden,
// which is the difference of both plans.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/certificates/job_certificates.h"
#include "common/model/convert.h"
#include "common/program/compile.h"
#include "operator/records/plan_request.h"
#include "operator/records/profile_store.h"
#include "scheduler-service/simulate/from_profile.h"
#include "scheduler-service/simulate/simulate.h"
#include "tests/integration/worker/job_harness.h"
#include "worker/collective/group.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
constexpr int kWarmUpSteps = 10;
constexpr int kBatch = 512;

struct Settings {
  int width = 768;
  int layers = 4;
  int64_t bucket_kib = 1024;
  int seconds = 6;
  int rounds = 3;
};

// Seconds of an allreduce of two ranks over encrypted connections, by bytes.
class Reductions {
 public:
  absl::Status Connect() {
    const base::SystemClock clock;
    MEDLEY_ASSIGN_OR_RETURN(folder_, base::MakeTempDir("medley-overlap"));
    MEDLEY_ASSIGN_OR_RETURN(const certificates::KeyPair authority,
                            certificates::MakeJobAuthority("bench", clock.Now()));
    MEDLEY_ASSIGN_OR_RETURN(const certificates::KeyPair own,
                            certificates::IssueForJob(authority, "bench", clock.Now(), std::chrono::hours(24)));
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / "ca.crt", authority.certificate));
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(folder_ / "identity.pem", own.certificate + own.key));
    std::vector<absl::Status> statuses(2);
    {
      std::vector<std::jthread> ranks;
      for (int rank = 0; rank < 2; ++rank) {
        ranks.emplace_back([this, rank, &statuses] {
          GroupOptions options{.name = "overlap", .rank = rank, .members = {"0", "1"}, .address = "127.0.0.1"};
          options.tls = GroupTls{folder_ / "ca.crt", folder_ / "identity.pem", certificates::JobName("bench")};
          auto group = Group::Connect(options, store_, {});
          statuses[static_cast<size_t>(rank)] = group.status();
          if (group.ok()) groups_[rank] = *std::move(group);
        });
      }
    }
    for (const absl::Status& status : statuses) MEDLEY_RETURN_IF_ERROR(status);
    return absl::OkStatus();
  }
  ~Reductions() {
    for (auto& group : groups_) group.reset();
    base::RemoveTempDir(folder_);
  }

  absl::StatusOr<double> Seconds(int64_t bytes, model::AllreduceAlgorithm algorithm) {
    const auto known = seconds_.find(bytes);
    if (known != seconds_.end()) return known->second;
    const base::SystemClock clock;
    std::vector<double> times;
    std::vector<float> values[2] = {std::vector<float>(static_cast<size_t>(bytes / 4)),
                                    std::vector<float>(static_cast<size_t>(bytes / 4))};
    for (int call = 0; call < 6; ++call) {
      absl::Status other;
      const base::SteadyTime begin = clock.Steady();
      {
        const std::jthread peer([&] { other = groups_[1]->AllreduceSum(values[1], algorithm); });
        MEDLEY_RETURN_IF_ERROR(groups_[0]->AllreduceSum(values[0], algorithm));
      }
      MEDLEY_RETURN_IF_ERROR(other);
      if (call > 0) times.push_back(base::ToSeconds(clock.Steady() - begin));  // the first warms up
    }
    std::sort(times.begin(), times.end());
    return seconds_[bytes] = times[times.size() / 2];
  }

 private:
  std::filesystem::path folder_;
  MemoryStore store_;
  std::unique_ptr<Group> groups_[2];
  std::map<int64_t, double> seconds_;
};

JobOptions OptionsOf(const Settings& settings) {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.model = "mlp";
  options.tables = {};
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
  options.hidden.assign(static_cast<size_t>(settings.layers), settings.width);
  options.epochs = 100000;  // so that the job does not finish during the measurement
  options.batch_size = kBatch;
  return options;
}

absl::StatusOr<double> MeasureStep(const JobOptions& options, const JobShape& shape, int for_seconds,
                                   model::ExecutionPlan& plan) {
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply(shape, "bench");
  MEDLEY_ASSIGN_OR_RETURN(plan, model::FromProto(job.plan()));
  job.WaitFor([](const pb::Observation& o) { return o.step() >= kWarmUpSteps; }, base::seconds(120));
  base::SystemClock clock;
  const pb::Observation first = job.Observe();
  const base::SteadyTime begin = clock.Steady();
  clock.SleepFor(base::seconds(for_seconds), {});
  const pb::Observation last = job.Observe();
  const double seconds = base::ToSeconds(clock.Steady() - begin);
  if (testing::Test::HasFailure() || last.phase() != pb::JOB_PHASE_TRAINING || last.restarts() > 0) {
    return base::FailedPrecondition("not a steady run: {}{}", last.ShortDebugString(), job.AllLogs());
  }
  return seconds / static_cast<double>(std::max<int64_t>(1, last.step() - first.step()));
}

absl::StatusOr<double> SimulateStep(const model::ExecutionPlan& plan, const model::Profile& profile,
                                    Reductions& reductions) {
  MEDLEY_ASSIGN_OR_RETURN(const program::Program program, program::Compile(plan, profile.model));
  MEDLEY_ASSIGN_OR_RETURN(sched::Durations durations, sched::DurationsFromProfile(program, profile, kBatch));
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const program::Block& block = program.blocks[b];
    if (block.group < 0) continue;
    double bytes = 0;
    for (int op = block.operations.first; op < block.operations.end; ++op) {
      bytes += profile.model.layers[static_cast<size_t>(op)].weight_bytes;
    }
    const auto& level = program.groups[static_cast<size_t>(block.group)].levels.front();
    MEDLEY_ASSIGN_OR_RETURN(durations.reductions[b], reductions.Seconds(static_cast<int64_t>(bytes), level.algorithm));
  }
  MEDLEY_ASSIGN_OR_RETURN(const sched::Simulation simulation,
                          sched::Simulate(program, durations, {.samples = kBatch, .steps = 50}));
  return simulation.seconds_per_step;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Status Measure(const Settings& settings) {
  const JobOptions options = OptionsOf(settings);
  model::Profile profile;
  {
    JobHarness job(options);
    MEDLEY_ASSIGN_OR_RETURN(const std::string log, job.RunProfiler("cpu"));
    MEDLEY_ASSIGN_OR_RETURN(const std::string json, ops::ProfileJsonInLog(log));
    MEDLEY_ASSIGN_OR_RETURN(profile, ops::ParseProfile(json, "cpu"));
  }
  const int operations = static_cast<int>(profile.model.layers.size());
  Reductions reductions;
  MEDLEY_RETURN_IF_ERROR(reductions.Connect());
  std::vector<double> measured[2];
  double simulated[2] = {0, 0};
  for (int round = 0; round < settings.rounds; ++round) {
    for (int buckets = 0; buckets < 2; ++buckets) {
      const JobShape shape{.stages = {{.end = operations, .units = 2}},
                           .micro_batches = 1,
                           .bucket_bytes = buckets == 0 ? 0 : settings.bucket_kib << 10};
      model::ExecutionPlan plan;
      MEDLEY_ASSIGN_OR_RETURN(measured[buckets].emplace_back(), MeasureStep(options, shape, settings.seconds, plan));
      MEDLEY_ASSIGN_OR_RETURN(simulated[buckets], SimulateStep(plan, profile, reductions));
      std::fprintf(stderr, "%-12s measured %7.2f ms, simulated %7.2f ms\n", buckets == 0 ? "one bucket" : "buckets",
                   1e3 * measured[buckets].back(), 1e3 * simulated[buckets]);
    }
  }
  const double hidden = Median(measured[0]) - Median(measured[1]), expected = simulated[0] - simulated[1];
  const nlohmann::ordered_json out = {{"measuredSeconds", {Median(measured[0]), Median(measured[1])}},
                                      {"simulatedSeconds", {simulated[0], simulated[1]}},
                                      {"hiddenSeconds", hidden},
                                      {"simulatedHiddenSeconds", expected},
                                      {"ratio", expected > 0 ? hidden / expected : 0}};
  std::printf("%s\n", out.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::Settings settings;
  CLI::App app("What a real run and the simulated timeline hide of the time of reductions");
  app.add_option("--width", settings.width, "units of a layer")->check(CLI::Range(16, 4096))->capture_default_str();
  app.add_option("--layers", settings.layers, "of the model")->check(CLI::Range(2, 16))->capture_default_str();
  app.add_option("--bucket-kib", settings.bucket_kib, "size of a bucket")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "of each measurement")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "of both plans in turn")->check(CLI::Range(1, 99))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest();  // the harness reports its failures to it
  signal(SIGPIPE, SIG_IGN);
  const absl::Status status = medley::worker::Measure(settings);
  if (status.ok()) return 0;
  std::fprintf(stderr, "overlap_bench: %s\n", medley::base::Message(status).c_str());
  return 1;
}

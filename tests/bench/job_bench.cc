// Measures samples per second of a real job: medley-worker processes on loopback, with data from a CSV file, controlled
// as the operator would control them.
//
//   job_bench --data FILE --set criteo|ctrdnn1|adult [--trainers 1] [--servers 0 | --rows-in-trainers] [--batch 512]
//             [--optimizer adagrad|adam] [--seconds 6] [--no-tls]
//
// The job has one stage with `trainers` replicas (allreduce for dense parameters, tables on `servers` or in trainers).
// --batch is the batch size per trainer. Measures from step 20 for `seconds`, between two observations of the
// coordinator, and then kills the job. Prints one line of JSON; the processor time is that of all processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/clock.h"
#include "localcluster/node/proc_stat.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;
constexpr int kWarmUpSteps = 20;

struct Settings {
  std::string data;
  std::string set = "criteo";
  std::string optimizer = "adagrad";
  int trainers = 1;
  int servers = 0;
  bool rows_in_trainers = false;
  int batch = 512;
  int seconds = 6;
  bool tls = true;
};

JobOptions OptionsOf(const Settings& settings) {
  JobOptions options;
  options.train = std::filesystem::absolute(settings.data);
  options.tls = settings.tls;
  options.epochs = 100000;  // so that the job does not finish during the measurement
  options.batch_size = settings.batch * settings.trainers;
  options.optimizer = settings.optimizer;
  if (settings.optimizer == "adam") options.learning_rate = 0.001;
  if (settings.set != "adult") {
    options.hidden = {400, 400, 400};
    if (settings.set == "ctrdnn1") options.hidden = {400, 400};  // of HeterPS, as examples/zoo/ctrdnn-7-low.yaml
    options.embedding_dim = 10;
    options.embedding_rows = 1000001;
    options.schema = R"({"label": {"column": 0, "positive": "1"},
        "categorical": [14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                        27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39],
        "numeric": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]})";
  } else {  // examples/adult.yaml
    options.hidden = {256, 128};
    options.embedding_dim = 16;
    options.embedding_rows = 65536;
    options.schema =
        R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
        "numeric": [0, 2, 4, 10, 11, 12], "numericBuckets": 32})";
  }
  return options;
}

// Processor time of all processes of the job, the coordinator's too.
double ProcessorSeconds(const std::vector<pid_t>& processes) {
  double seconds = 0;
  for (const pid_t process : processes) {
    if (const auto stat = localcluster::ReadProcStat(process)) seconds += base::ToSeconds(stat->cpu);
  }
  return seconds;
}

int Measure(const Settings& settings) {
  std::vector<pid_t> processes;
  JobOptions options = OptionsOf(settings);
  options.place = [&processes](const std::string&, pid_t process) { processes.push_back(process); };
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, job.operations(), settings.trainers}},
             .servers = settings.servers,
             .rows_in_trainers = settings.rows_in_trainers},
            "bench");
  const auto warm = [](const pb::Observation& o) { return o.step() >= kWarmUpSteps; };
  job.WaitFor(warm, base::seconds(120));
  base::SystemClock clock;
  const pb::Observation first = job.Observe();
  const double processor_before = ProcessorSeconds(processes);
  const base::SteadyTime begin = clock.Steady();
  clock.SleepFor(base::seconds(settings.seconds), {});
  const pb::Observation last = job.Observe();
  const double seconds = base::ToSeconds(clock.Steady() - begin);
  const double processor = ProcessorSeconds(processes) - processor_before;
  const auto samples = static_cast<double>(last.samples_done() - first.samples_done());
  if (testing::Test::HasFailure() || last.phase() != pb::JOB_PHASE_TRAINING || last.restarts() > 0) {
    std::fprintf(stderr, "job_bench: not a steady run: %s%s\n", last.ShortDebugString().c_str(), job.AllLogs().c_str());
    return 1;
  }
  const double compute = last.stages_size() > 0 ? last.stages(0).compute_seconds() : 0;
  const double communication = last.stages_size() > 0 ? last.stages(0).comm_seconds() : 0;
  fmt::print(R"({{"samples_per_second": {:.0f}, "steps": {}, "seconds": {:.3f}, "compute_seconds_per_step": {:.6f}, )"
             R"("communication_seconds_per_step": {:.6f}, "processor_seconds_per_sample": {:.3e}}})"
             "\n",
             samples / seconds, last.step() - first.step(), seconds, compute, communication,
             processor / std::max(1.0, samples));
  return 0;
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::Settings settings;
  CLI::App app("Samples a second of a job of real processes");
  app.add_option("--data", settings.data, "CSV file")->required()->check(CLI::ExistingFile);
  app.add_option("--set", settings.set, "its columns and the model")
      ->check(CLI::IsMember({"criteo", "ctrdnn1", "adult"}));
  app.add_option("--optimizer", settings.optimizer)->check(CLI::IsMember({"adagrad", "adam"}));
  app.add_option("--trainers", settings.trainers, "data-parallel trainers")->check(CLI::PositiveNumber);
  app.add_flag("--rows-in-trainers", settings.rows_in_trainers, "the trainers keep the rows, without servers");
  app.add_option("--servers", settings.servers, "parameter servers")->check(CLI::NonNegativeNumber);
  app.add_option("--batch", settings.batch, "samples a step of each trainer")->check(CLI::PositiveNumber);
  app.add_option("--seconds", settings.seconds, "of the measurement")->check(CLI::PositiveNumber);
  app.add_flag("--tls,!--no-tls", settings.tls, "between the processes of the job")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return medley::worker::Measure(settings);
}

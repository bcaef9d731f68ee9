// Measures what reading samples ahead in blocks costs: training steps of one trainer on Criteo-shaped data, with all
// samples in memory, and with a file of samples of which two windows are in memory and whose pages are not cached
// before. Both take turns, each in a process of its own; the one with the file may use a tenth of the data's size as
// memory where this machine lets us limit it (cgroups). Exit status 0: the median of the ratios by processor time, that
// other load hardly changes, reaches its target, and no more memory was resident than the limit.
//
//   input_bench [--mib 1024] [--rounds 5] [--seconds 4] [--threads 2] [--model ctrdnn|logistic] [--folder /tmp]
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/processor_time.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "common/model/execution_plan.h"
#include "common/model/model.h"
#include "common/model/sample_bytes.h"
#include "common/program/compile.h"
#include "localcluster/node/enforcer.h"
#include "tests/bench/criteo_shape.h"
#include "worker/model/block_model.h"
#include "worker/model/graph.h"
#include "worker/pipeline/executor.h"
#include "worker/pipeline/local_tables.h"

namespace medley::worker {
namespace {

constexpr int64_t kInputRows = 100'000;  // of the embedding table
constexpr int kInputBatch = 512;
constexpr double kMebibytes = 1 << 20;
constexpr double kLeastRatio = 0.95;  // of samples in a second of processor time, from the file and in memory

struct InputOptions {
  int64_t mib = 1024;
  int rounds = 5;
  double seconds = 4;
  int threads = 2;
  std::string model = "ctrdnn";
  std::string folder = "/tmp";
};

// What a process measures. A plain value, which passes through a pipe.
struct Measured {
  double samples_per_second = 0;
  double per_processor_second = 0;  // samples; other load of the machine hardly changes it
  double waited = 0;                // seconds for samples, after the first step
  double first_wait = 0;            // of the first step
  double highest = 0;               // bytes resident, with pages of files
  double windows = 0;               // bytes
  bool ok = false;
};

model::JobSpec InputJob(const InputOptions& options, int64_t window) {
  model::JobSpec job;
  job.model.name = options.model;
  job.model.embedding_dim = 10;
  job.model.embedding_rows = kInputRows;
  job.model.hidden = {400, 400, 400};
  job.data.train = {"file:///generated", "csv"};
  job.data.schema.label_column = 0;
  for (int i = 0; i < 13; ++i) job.data.schema.numeric.push_back(1 + i);
  for (int i = 0; i < 26; ++i) job.data.schema.categorical.push_back(14 + i);
  job.data.shuffle_window = window;
  job.training.batch_size = kInputBatch;
  return job;
}

absl::StatusOr<std::shared_ptr<const SampleFile>> WriteSamples(const std::string& folder, int64_t samples) {
  const std::shared_ptr<const Dataset> piece = CriteoShape(65536, kInputRows, 1);
  const Batch rows = piece->all();
  const SampleCounts counts{.shape = rows.shape, .weights = false, .samples = {samples, 0}};
  MEDLEY_ASSIGN_OR_RETURN(const auto writer, SampleFileWriter::Create(folder, true, counts, {}));
  for (int64_t at = 0; at < samples; at += rows.samples) {
    Batch some = rows;
    if (samples - at < rows.samples) {
      const BatchView view = rows.View(0, static_cast<int>(samples - at));
      some = {.shape = rows.shape,
              .samples = view.samples,
              .ids = {view.ids.begin(), view.ids.end()},
              .numerics = {view.numerics.begin(), view.numerics.end()},
              .labels = {view.labels.begin(), view.labels.end()},
              .weights = {}};
    }
    MEDLEY_RETURN_IF_ERROR(writer->Append(RowSet::kTraining, some));
  }
  return writer->Finish(std::string(32, 'k'), folder + "/samples");
}

// The pages of the file are read from the disk again.
void DropPages(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  fdatasync(fd);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

double StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  double kib = 0;
  for (std::string word; status >> word;) {
    if (word == name) status >> kib;
  }
  return kib * 1024;
}

absl::Status TrainFor(const InputOptions& options, const Dataset& data, int64_t window, Measured& measured) {
  const model::JobSpec job = InputJob(options, window);
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, BuildGraph(job));
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, MakeOptimizer("adagrad", 0.05));
  const auto operations = static_cast<int>(graph.operations.size());
  MEDLEY_ASSIGN_OR_RETURN(const auto block, BlockModel::Create(graph, {0, operations}, optimizer, 1));
  LocalTables tables(graph.Parameters(/*sparse=*/true), optimizer, 1);
  base::SystemClock clock;
  model::ExecutionPlan plan;
  plan.stages = {{.operations = {{0, operations}}, .groups = {{"cpu", 1, 1}}}};
  MEDLEY_ASSIGN_OR_RETURN(program::Program training, program::Compile(plan, graph.ToModel()));
  MEDLEY_ASSIGN_OR_RETURN(program::Program evaluation, program::CompileEvaluation(plan, graph.ToModel()));
  const Programs programs{std::move(training), std::move(evaluation)};
  ExecutorParts parts{.blocks = {block.get()},
                      .data = &data,
                      .sparse = &tables,
                      .clock = &clock,
                      .blocks_of_data = BlockOrderOf(job.data, data.rows())};
  MEDLEY_ASSIGN_OR_RETURN(const auto executor, Executor::Create(programs, 0, parts, optimizer, 1));
  const int64_t steps_an_epoch = data.rows() / kInputBatch;
  const auto lease = [&](int64_t step) {
    return StepLease{step, (step - 1) / steps_an_epoch, (step - 1) % steps_an_epoch * kInputBatch, kInputBatch};
  };
  base::SteadyTime start{};
  double processor = 0;
  int64_t step = 0;
  while (step < 2 || base::ToSeconds(clock.Steady() - start) < options.seconds) {
    ++step;
    executor->Prefetch(lease(step));
    executor->Prefetch(lease(step + 1));
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<StepResult> result, executor->RunStep(lease(step), {}));
    (step == 1 ? measured.first_wait : measured.waited) += result->data_seconds;
    if (step > 1) continue;
    start = clock.Steady();
    processor = base::ProcessorSeconds();
  }
  measured.samples_per_second = static_cast<double>((step - 1) * kInputBatch) / base::ToSeconds(clock.Steady() - start);
  measured.per_processor_second =
      static_cast<double>((step - 1) * kInputBatch) / (base::ProcessorSeconds() - processor);
  measured.windows = static_cast<double>(data.window_bytes());
  measured.highest = StatusBytes("VmHWM:");
  return absl::OkStatus();
}

// In a process of its own, so that its memory can be measured and limited.
Measured InProcess(const InputOptions& options, const std::string& path, bool memory, int64_t window,
                   localcluster::Enforcement* limit) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    localcluster::SpawnSpec spec;
    if (limit != nullptr) limit->Prepare(spec);
    for (const std::string& file : spec.cgroup_procs) std::ofstream(file) << getpid();
    Measured measured;
    absl::Status status;
    if (auto file = SampleFile::Open(path, std::string(32, 'k'), {}, {}); file.ok()) {
      DropPages(path);
      std::shared_ptr<const Dataset> data = Dataset::FromFile(*std::move(file), options.threads);
      if (memory) data = Dataset::FromBatch(data->all());
      status = TrainFor(options, *data, window, measured);
    } else {
      status = file.status();
    }
    if (!status.ok()) std::fprintf(stderr, "input_bench: %s\n", base::ToString(status).c_str());
    measured.ok = status.ok();
    _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  if (child < 0 || read(ends[0], &measured, sizeof measured) != sizeof measured) measured = {};
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return measured;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int RunInputBench(const InputOptions& options) {
  const int64_t sample = model::SampleBytes(InputJob(options, 0).data.schema);
  const int64_t bytes = options.mib << 20, samples = bytes / sample, limit = bytes / 10;
  const int64_t window = limit / 5 / sample;  // two of them are in memory, beside the model and its gradients
  const auto folder = base::MakeTempDir(options.folder + "/medley-input");
  if (!folder.ok()) return std::fprintf(stderr, "input_bench: %s\n", base::ToString(folder.status()).c_str()), 1;
  if (const auto file = WriteSamples(folder->string(), samples); !file.ok()) {
    return std::fprintf(stderr, "input_bench: %s\n", base::ToString(file.status()).c_str()), 1;
  }
  base::SystemClock clock;
  const auto enforcer = localcluster::MakeEnforcer(localcluster::CgroupPolicy::kRequired,
                                                   fmt::format("input-{}", getpid()), base::milliseconds(100), clock);
  fmt::print("{}: {} MiB of samples, windows of {:.1f} MiB, limit of the process with the file: {}\n", options.model,
             options.mib, static_cast<double>(window * sample) / kMebibytes,
             enforcer.ok()
                 ? fmt::format("{:.0f} MiB ({})", static_cast<double>(limit) / kMebibytes, (*enforcer)->name())
                 : "none, because cgroups are not writable");
  std::vector<double> ratios, processor;
  double waited = 0, highest = 0;
  bool ok = true;
  for (int round = 0; round < options.rounds && ok; ++round) {
    std::unique_ptr<localcluster::Enforcement> held;
    if (enforcer.ok()) {
      auto applied = (*enforcer)->Apply(fmt::format("round-{}", round), {.cores = {}, .memory_bytes = limit});
      if (applied.ok()) held = *std::move(applied);
    }
    const std::string path = folder->string() + "/samples";
    const Measured memory = InProcess(options, path, true, window, nullptr);
    const Measured file = InProcess(options, path, false, window, held.get());
    ok = memory.ok && file.ok;
    if (!ok) break;
    ratios.push_back(file.samples_per_second / memory.samples_per_second);
    waited += file.waited;
    highest = std::max(highest, file.highest);
    processor.push_back(file.per_processor_second / memory.per_processor_second);
    fmt::print(
        "in memory {:.0f} samples/s, waited {:.4f} s; from the file {:.0f}, waited {:.4f} s ({:.3f} s for the first "
        "step); ratio {:.3f}, by processor time {:.3f}; {:.1f} MiB of windows, {:.0f} MiB resident at most\n",
        memory.samples_per_second, memory.waited, file.samples_per_second, file.waited, file.first_wait, ratios.back(),
        processor.back(), file.windows / kMebibytes, file.highest / kMebibytes);
    std::fflush(stdout);
  }
  base::RemoveTempDir(*folder);
  if (!ok) return std::fprintf(stderr, "input_bench: a process ended without figures\n"), 1;
  const bool reached = Median(processor) >= kLeastRatio && highest <= static_cast<double>(limit);
  fmt::print(
      "median ratio {:.3f}, by processor time {:.3f} (target {}); waited {:.4f} s in all, {:.0f} MiB resident at most "
      "of "
      "{:.0f}: {}\n",
      Median(ratios), Median(processor), kLeastRatio, waited, highest / kMebibytes,
      static_cast<double>(limit) / kMebibytes, reached ? "reached" : "missed");
  return reached ? 0 : 1;
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::InputOptions options;
  CLI::App app("Measures what reading samples ahead in blocks costs.");
  app.add_option("--mib", options.mib, "MiB of samples")->check(CLI::Range(64, 1 << 20));
  app.add_option("--rounds", options.rounds, "turns")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "seconds of training in each turn")->check(CLI::Range(0.1, 3600.0));
  app.add_option("--threads", options.threads, "threads that read")->check(CLI::Range(1, 256));
  app.add_option("--model", options.model, "ctrdnn or logistic")->check(CLI::IsMember({"ctrdnn", "logistic"}));
  app.add_option("--folder", options.folder, "folder on the disk that is read");
  CLI11_PARSE(app, argc, argv);
  return medley::worker::RunInputBench(options);
}

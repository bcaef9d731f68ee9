#include "worker/profiler/profiler.h"

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <numeric>
#include <utility>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/program/samples.h"
#include "medley/profile/v1/profile.pb.h"
#include "worker/aten/make_block.h"
#include "worker/data/label_values.h"
#include "worker/model/block_shape.h"
#include "worker/model/fit_graph.h"
#include "worker/model/graph.h"
#include "worker/params/optimizer_of.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/profiler/allreduce_table.h"
#include "worker/profiler/statistics.h"

namespace medley::worker {
namespace {

constexpr std::array<double, 3> kUnits = {1, 2, 4};    // with k units each one's batch is B_o / k
constexpr size_t kConfigurations = kUnits.size() + 1;  // measured of each operation; the last: one micro-batch
constexpr size_t kBlocks = 5;
constexpr double kComputeShare = 0.7;    // share of the time budget for measuring computation
constexpr double kAllreduceShare = 0.5;  // for measuring the algorithms of allreduces, beyond the budget

// Beyond it, what moving data takes grows with the bytes: measuring the gradients of a large model as a whole would
// take minutes where a limit leaves a fraction of a core.
constexpr int64_t kMostMoved = int64_t{16} << 20;

// The measured cost of an operation at one batch size.
struct Cost {
  double seconds = 0;
  double spread = 0;             // of `seconds`
  double processor_spread = 0;   // of `processor_seconds`
  double processor_seconds = 0;  // less than `seconds` where a limit or other work holds the operation up
  double burst_seconds = 0;      // of a single run; less than `seconds` where a limit interrupts some of the runs
  double forward_part = 0;       // of a step's passes and update
  double update_part = 0;
  int64_t rows = 0;  // number of distinct table rows that the batch uses
};

// Seconds of the parts of single steps.
struct Parts {
  std::vector<double> forward, backward, update;
};

double ProcessorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class LayerTimer {
 public:
  LayerTimer(const ProfilerOptions& options, const Graph& graph, const Dataset& data, const Optimizer& optimizer)
      : options_(options), graph_(graph), data_(data), optimizer_(optimizer) {}

  // Measures steps of `samples` in `micros` micro-batches for about `budget` seconds.
  absl::StatusOr<Cost> Time(int operation, int samples, int micros, double budget) const;

 private:
  // Runs one step of the operation alone, with everything that a trainer computes for it.
  absl::Status Step(BlockCompute& model, BatchAssembler& assembler, PreparedStep& step, int64_t number, int samples,
                    int micros, std::span<const float> activations, Parts& parts) const;

  const ProfilerOptions& options_;
  const Graph& graph_;
  const Dataset& data_;
  const Optimizer& optimizer_;
};

// A span of each value's size for `samples`; all begin at the same place.
std::vector<std::span<const float>> Constants(const std::vector<BlockValue>& values, size_t samples,
                                              std::span<const float> constants) {
  std::vector<std::span<const float>> spans;
  for (const BlockValue& value : values) spans.push_back(constants.first(samples * static_cast<size_t>(value.width)));
  return spans;
}

int Widest(const BlockCompute& model) {
  int width = 0;
  for (const BlockValue& value : model.Inputs()) width = std::max(width, value.width);
  for (const BlockValue& value : model.Outputs()) width = std::max(width, value.width);
  return width;
}

absl::Status LayerTimer::Step(BlockCompute& model, BatchAssembler& assembler, PreparedStep& step, int64_t number,
                              int samples, int micros, std::span<const float> activations, Parts& parts) const {
  const int usable = static_cast<int>(std::min<int64_t>(samples, data_.rows()));
  const int64_t first = number * samples % (data_.rows() - usable + 1);
  assembler.AssembleRange(data_, first, usable, step);
  model.BeginStep({.step = number, .version = model.AppliedStep(), .micro_batches = micros, .global_samples = samples});
  for (size_t t = 0; t < step.tables.size(); ++t) {
    const size_t floats = step.tables[t].keys.size() * static_cast<size_t>(step.tables[t].columns);
    step.rows.resize(step.tables.size());
    step.rows[t].resize(floats, 0.01F);
    model.SetRows(0, static_cast<int>(t), step.rows[t]);
  }
  double forward = 0, backward = 0, update = 0;
  base::SteadyTime since = options_.clock->Steady();
  const auto add = [&](double& part) {
    const base::SteadyTime now = options_.clock->Steady();
    part += base::ToSeconds(now - std::exchange(since, now));
  };
  for (int micro = 0; micro < micros; ++micro) {
    const SampleRange range = program::MicroBatch(usable, micro, micros);
    if (range.count == 0) continue;  // fewer samples than micro-batches
    const size_t count = static_cast<size_t>(range.count);
    const BatchView view = step.batch.View(range.first, range.count);
    MEDLEY_RETURN_IF_ERROR(model.Forward({0, micro}, view, Constants(model.Inputs(), count, activations)).status());
    add(forward);
    MEDLEY_RETURN_IF_ERROR(model.Backward({0, micro}, Constants(model.Outputs(), count, activations)).status());
    add(backward);
  }
  MEDLEY_RETURN_IF_ERROR(model.ApplyUpdate(optimizer_));
  add(update);
  parts.forward.push_back(forward);
  parts.backward.push_back(backward);
  parts.update.push_back(update);
  return absl::OkStatus();
}

absl::StatusOr<Cost> LayerTimer::Time(int operation, int samples, int micros, double budget) const {
  MEDLEY_ASSIGN_OR_RETURN(const std::unique_ptr<BlockCompute> model,
                          aten::MakeBlock(graph_, {operation, operation + 1}, optimizer_, options_.job.training.seed,
                                          options_.threads, 1, options_.device));
  std::vector<SeatTable> tables;
  for (const ParameterSpec& spec : model->Tables()) tables.push_back({spec});
  BatchAssembler assembler(1, BatchShare{}, data_, std::move(tables));
  const std::vector<float> activations(static_cast<size_t>(samples) * static_cast<size_t>(Widest(*model)), 0.01F);
  PreparedStep step;
  std::vector<double> seconds;
  std::vector<double> processor_seconds;
  std::vector<double> single;  // of each run
  Parts parts;
  const base::SteadyTime begin = options_.clock->Steady();
  // The first run is a warm-up. Each value is the mean over a block that is long compared with the period of a CPU
  // limit (10 to 100 ms). Single runs can fit within one period, which would hide the limit.
  int64_t number = 0;
  MEDLEY_RETURN_IF_ERROR(Step(*model, assembler, step, number++, samples, micros, activations, parts));
  const double block = budget / kBlocks;
  // Run at least one block, however slow the machine is.
  while (seconds.empty() ||
         (seconds.size() < kBlocks && base::ToSeconds(options_.clock->Steady() - begin) < 4 * budget)) {
    const base::SteadyTime start = options_.clock->Steady();
    const double processor = ProcessorSeconds();
    int runs = 0;
    double elapsed = 0;
    do {
      if (options_.stop.stop_requested()) return base::Cancelled("profiling was stopped");
      MEDLEY_RETURN_IF_ERROR(Step(*model, assembler, step, number++, samples, micros, activations, parts));
      ++runs;
      const double before = std::exchange(elapsed, base::ToSeconds(options_.clock->Steady() - start));
      single.push_back(elapsed - before);
    } while (elapsed < block);
    seconds.push_back(elapsed / runs);
    processor_seconds.push_back((ProcessorSeconds() - processor) / runs);
  }
  // Not the fastest block: a CPU limit lets single blocks pass faster than it allows in the long run.
  Cost cost{.seconds = Median(seconds), .spread = Spread(seconds)};
  cost.processor_spread = Spread(processor_seconds);
  cost.processor_seconds = Median(std::move(processor_seconds));
  cost.burst_seconds = Median(std::move(single));
  const double forward = Median(std::move(parts.forward)), update = Median(std::move(parts.update));
  if (const double all = forward + Median(std::move(parts.backward)) + update; all > 0) {
    cost.forward_part = forward / all;
    cost.update_part = update / all;
  }
  if (!step.tables.empty()) cost.rows = std::ssize(step.tables.front().keys);
  return cost;
}

// Seconds that pass for a second of processor time; the same for all numbers of units, at least 1.
double Slowdown(const std::array<Cost, kUnits.size()>& costs) {
  double seconds = 0;
  double processor = 0;
  for (const Cost& cost : costs) {
    seconds += cost.seconds;
    processor += cost.processor_seconds;
  }
  return processor > 0 ? std::max(1.0, seconds / processor) : 1;
}

// What `move` measures for `bytes`.
absl::StatusOr<Traffic> TimeMoving(int64_t bytes, absl::FunctionRef<absl::StatusOr<Traffic>(int64_t bytes)> move) {
  const int64_t measured = std::min(bytes, kMostMoved);
  MEDLEY_ASSIGN_OR_RETURN(Traffic traffic, move(measured));
  const double times = measured < bytes ? static_cast<double>(bytes) / static_cast<double>(measured) : 1;
  traffic.seconds *= times;
  traffic.processor_seconds *= times;
  traffic.burst_seconds *= times;
  return traffic;
}

// Measures one layer's communication for one of k units: synchronisation (y), transfer (x) and their common parallel
// fraction (beta). Adds to `costs` what synchronisation takes of the processor, which cannot compute meanwhile.
// `cut_width` is what passes on between stages that are divided behind the layer, in floats per sample.
absl::Status TimeCommunication(CommunicationProbe& probe, const Operation& operation, int batch, int cut_width,
                               std::array<Cost, kUnits.size()>& costs, model::LayerProfile& profile) {
  std::array<double, kUnits.size()> seconds{};
  int64_t dense_bytes = 0;
  for (const ParameterSpec& spec : operation.parameters) {
    if (!spec.sparse) dense_bytes += 4 * spec.Size();
  }
  const double slowdown = Slowdown(costs);
  // A dense layer's gradient has the same size for every batch size, so more units do not shorten its allreduce.
  MEDLEY_ASSIGN_OR_RETURN(const Traffic allreduce,
                          TimeMoving(dense_bytes, [&](int64_t bytes) { return probe.Allreduce(bytes, 2); }));
  for (size_t i = 0; i < kUnits.size(); ++i) {
    Traffic sync = allreduce;
    if (operation.HasTable()) {
      MEDLEY_ASSIGN_OR_RETURN(
          const CommunicationProbe::ServerCost cost,
          probe.PullPushCost(costs[i].rows, static_cast<int>(operation.parameters.front().columns)));
      sync = cost.client;
      if (i == 0) profile.server_seconds = cost.server_seconds;
    }
    Traffic transfer;
    if (cut_width > 0) {
      const int64_t bytes = int64_t{4} * cut_width * std::max(1, static_cast<int>(batch / kUnits[i]));
      MEDLEY_ASSIGN_OR_RETURN(transfer, TimeMoving(bytes, [&](int64_t some) { return probe.Exchange(some); }));
    }
    seconds[i] = sync.seconds + transfer.seconds;
    if (i == 0) {
      profile.sync_seconds = sync.seconds;
      profile.transfer_seconds = transfer.seconds;
    }
    if (i == 0) profile.sync_processor_seconds = sync.processor_seconds * slowdown;
    costs[i].seconds += sync.processor_seconds * slowdown;
  }
  profile.comm_parallel = ParallelFraction(kUnits, seconds);
  return absl::OkStatus();
}

// The floats per sample that operations behind this one use of it and of those before it.
int CutWidth(const Graph& graph, int operation) {
  int width = 0;
  for (const BlockValue& value : ShapeOfBlock(graph, {0, operation + 1}).outputs) width += value.width;
  return width;
}

// `messages`: of an exchange, in each direction, one after the other. Each rank sends them and receives as many.
absl::StatusOr<model::Link> TimeLink(CommunicationProbe& probe, const std::string& resource_type, int messages) {
  constexpr int64_t kSmall = 1024;
  constexpr int64_t kLarge = 1 << 20;
  MEDLEY_ASSIGN_OR_RETURN(const Traffic small, probe.Exchange(kSmall));
  MEDLEY_ASSIGN_OR_RETURN(const Traffic large, probe.Exchange(kLarge));
  // What a CPU quota adds is not the link's: messages take processor time, which computation then lacks.
  const auto undisturbed = [](const Traffic& traffic) {
    return traffic.burst_seconds > 0 ? std::min(traffic.burst_seconds, traffic.seconds) : traffic.seconds;
  };
  // An exchange moves the bytes twice.
  const double seconds = std::max(undisturbed(large) - undisturbed(small), 1e-9) / 2;
  const double processor = std::max(large.processor_seconds - small.processor_seconds, 0.0) / 2;  // at one rank
  const double bytes = kLarge - kSmall;
  return model::Link{resource_type,
                     resource_type,
                     undisturbed(small) / 2 / messages,
                     bytes / seconds,
                     small.processor_seconds / 2 / messages,
                     processor / bytes};
}

// Of one operation.
struct Costs {
  std::array<Cost, kUnits.size()> by_units;
  Cost undivided;  // the batch in one micro-batch; zeros where each step has one
};

// Where a CPU limit holds the operations up, their seconds in the long run follow from their processor time: the
// limit's periods are long compared with the measurement of one operation, but not with that of all. For the same
// reason the spread is that of the processor time.
void ApplyLimit(double seconds_per_processor_second, std::vector<Costs>& all) {
  std::vector<RunTimes> times;
  for (const Costs& costs : all) {
    for (const Cost& cost : costs.by_units) {
      times.push_back({cost.seconds, cost.burst_seconds, cost.processor_seconds});
    }
  }
  const bool held_up = HeldUp(times);
  const auto apply = [&](Cost& cost) {
    if (held_up) {
      cost.seconds =
          LongRunSeconds({cost.seconds, cost.burst_seconds, cost.processor_seconds}, seconds_per_processor_second);
      cost.spread = cost.processor_spread;
    }
    cost.burst_seconds = std::min(cost.burst_seconds, cost.seconds);
  };
  for (Costs& costs : all) {
    std::ranges::for_each(costs.by_units, apply);
    apply(costs.undivided);
  }
}

// Measures all operations without a pause, so that the processor time of all of it is what a CPU limit grants.
absl::StatusOr<std::vector<Costs>> TimeComputation(const ProfilerOptions& options, const LayerTimer& timer,
                                                   size_t operations, int micro_batches) {
  const double budget =
      kComputeShare * options.budget_seconds / static_cast<double>(operations) / static_cast<double>(kConfigurations);
  std::vector<Costs> all(operations);
  const base::SteadyTime begin = options.clock->Steady();
  const double processor = ProcessorSeconds();
  for (size_t i = 0; i < operations; ++i) {
    const int operation = static_cast<int>(i), batch = options.job.training.batch_size;
    for (size_t k = 0; k < kUnits.size(); ++k) {
      const int samples = std::max(1, static_cast<int>(batch / kUnits[k]));
      MEDLEY_ASSIGN_OR_RETURN(all[i].by_units[k], timer.Time(operation, samples, micro_batches, budget));
    }
    if (micro_batches == 1) continue;
    MEDLEY_ASSIGN_OR_RETURN(all[i].undivided, timer.Time(operation, batch, 1, budget));
  }
  const double spent = ProcessorSeconds() - processor;
  ApplyLimit(spent > 0 ? base::ToSeconds(options.clock->Steady() - begin) / spent : 1, all);
  return all;
}

absl::StatusOr<model::Profile> MeasureProfile(const ProfilerOptions& options, const Dataset& data) {
  MEDLEY_ASSIGN_OR_RETURN(const Graph graph, FitGraph(options.job, data, options.root));
  const model::TrainingSpec& training = options.job.training;
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, OptimizerOf(training));
  if (!(data.shape() == graph.shape))
    return base::InvalidArgument("the training data does not have the features of spec.data.schema");

  model::Profile profile;
  profile.id = model::ProfileHash(options.job);
  profile.model = graph.ToModel();
  profile.profile_batch_size = training.batch_size;
  profile.state_factor = StateFactor(optimizer.kind);
  profile.samples_per_epoch = data.rows();
  profile.micro_batches = std::max(1, training.micro_batches);
  MEDLEY_ASSIGN_OR_RETURN(std::vector<Costs> measured,
                          TimeComputation(options, LayerTimer(options, graph, data, optimizer), graph.operations.size(),
                                          profile.micro_batches));
  for (int i = 0; i < static_cast<int>(graph.operations.size()); ++i) {
    model::LayerProfile layer;
    layer.resource_type = options.resource_type;
    layer.origin = "measured";
    auto& [costs, undivided] = measured[static_cast<size_t>(i)];
    layer.undivided_seconds = undivided.seconds;
    layer.spread = costs[0].spread;
    layer.burst_seconds = costs[0].burst_seconds;
    layer.forward_part = costs[0].forward_part;
    layer.update_part = costs[0].update_part;
    const Operation& operation = graph.operations[static_cast<size_t>(i)];
    layer.activation_bytes = 4.0 * operation.output_width;
    MEDLEY_RETURN_IF_ERROR(
        TimeCommunication(*options.probe, operation, training.batch_size, CutWidth(graph, i), costs, layer));
    if (layer.undivided_seconds > 0) layer.undivided_seconds += layer.sync_processor_seconds;  // as compute_seconds
    std::array<double, kUnits.size()> seconds{};
    std::transform(costs.begin(), costs.end(), seconds.begin(), [](const Cost& cost) { return cost.seconds; });
    layer.compute_seconds = seconds[0];
    layer.compute_parallel = ParallelFraction(kUnits, seconds);
    layer.measured_at = base::FormatTime(options.clock->Now());
    profile.model.layers[static_cast<size_t>(i)].profiles.push_back(std::move(layer));
  }
  MEDLEY_ASSIGN_OR_RETURN(profile.links.emplace_back(),
                          TimeLink(*options.probe, options.resource_type, profile.micro_batches));
  MEDLEY_ASSIGN_OR_RETURN(profile.allreduces,
                          MeasureAllreduces(*options.probe, *options.clock, options.resource_type,
                                            kAllreduceShare * options.budget_seconds, options.stop));
  return profile;
}

}  // namespace

absl::Status RunProfiler(const ProfilerOptions& options) {
  MEDLEY_CHECK(options.clock != nullptr && options.output != nullptr && options.probe != nullptr,
               "the profiler needs a clock, an output and a probe");
  MEDLEY_RETURN_IF_ERROR(model::Validate(options.job));
  const model::DataSpec& spec = options.job.data;
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> data,
                          Dataset::Load(spec.train, spec, nullptr,
                                        {.embedding_rows = options.job.model.embedding_rows,
                                         .threads = options.threads == nullptr ? 1 : options.threads->size(),
                                         .root = options.root,
                                         .stop = options.stop}));
  if (spec.test) {
    MEDLEY_RETURN_IF_ERROR(CheckLabels(*spec.test, spec, data->transform().label.classes, options.root, options.stop));
  }
  MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, MeasureProfile(options, *data));
  profile::v1::Profile proto;
  model::ToProto(profile, proto);
  *options.output << "MEDLEY-PROFILE " << model::ToJson(proto) << std::endl;
  return absl::OkStatus();
}

}  // namespace medley::worker

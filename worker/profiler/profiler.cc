#include "worker/profiler/profiler.h"

#include <absl/functional/function_ref.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/processor_time.h"
#include "common/base/status.h"
#include "common/model/profile.h"
#include "common/model/sample_bytes.h"
#include "common/program/process_memory.h"
#include "worker/data/label_values.h"
#include "worker/data/memory_estimate.h"
#include "worker/device/device.h"
#include "worker/export/initial_weights.h"
#include "worker/model/block_shape.h"
#include "worker/model/fit_graph.h"
#include "worker/model/graph.h"
#include "worker/model/vector_layers.h"
#include "worker/params/optimizer_of.h"
#include "worker/profiler/allreduce_table.h"
#include "worker/profiler/print_profile.h"
#include "worker/profiler/statistics.h"
#include "worker/profiler/step_timer.h"
#include "worker/profiler/tables_on_device.h"
#include "worker/profiler/used_rows.h"

namespace medley::worker {
namespace {

constexpr std::array<double, 3> kUnits = {1, 2, 4};    // with k units each one's batch is B_o / k
constexpr size_t kConfigurations = kUnits.size() + 2;  // measured of each operation; the last: one micro-batch
constexpr double kComputeShare = 0.7;                  // share of the time budget for measuring computation
constexpr double kAllreduceShare = 0.5;                // for measuring the algorithms of allreduces, beyond the budget

// Beyond it, what moving data takes grows with the bytes: measuring the gradients of a large model as a whole would
// take minutes where a limit leaves a fraction of a core.
constexpr int64_t kMostMoved = int64_t{16} << 20;

// Seconds that pass for a second of processor time; the same for all numbers of units, at least 1.
double Slowdown(const std::array<OperationCost, kUnits.size()>& costs) {
  double seconds = 0;
  double processor = 0;
  for (const OperationCost& cost : costs) {
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
                               std::array<OperationCost, kUnits.size()>& costs, model::LayerProfile& profile) {
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

// What half of the model computes with between two messages, which is more than the activations: the model::
// BytesBetweenMessages of a stage with half of the parameters and one neighbour.
int64_t BytesBetweenMessages(const Graph& graph) {
  constexpr int64_t kLeast = 64 << 10, kMost = 8 << 20;
  int64_t dense = 0;
  for (const Operation& operation : graph.operations) {
    for (const ParameterSpec& spec : operation.parameters) dense += spec.sparse ? 0 : 4 * spec.Size();
  }
  return std::clamp(dense, kLeast, kMost);
}

// `messages`: of an exchange, in each direction, one after the other. Each rank sends them and receives as many.
absl::StatusOr<model::Link> TimeLink(CommunicationProbe& probe, const std::string& resource_type, int messages,
                                     int64_t computed_bytes) {
  constexpr int64_t kSmall = 1024;
  constexpr int64_t kLarge = 1 << 20;
  MEDLEY_ASSIGN_OR_RETURN(const Traffic small, probe.Exchange(kSmall));
  MEDLEY_ASSIGN_OR_RETURN(const Traffic large, probe.Exchange(kLarge));
  MEDLEY_ASSIGN_OR_RETURN(const double small_processor, probe.ExchangeAmidComputation(kSmall, computed_bytes));
  MEDLEY_ASSIGN_OR_RETURN(const double in_a_row, probe.ExchangeAmidComputation(kSmall, 0));
  MEDLEY_ASSIGN_OR_RETURN(const double large_processor, probe.ExchangeAmidComputation(kLarge, computed_bytes));
  // What a CPU quota adds is not the link's: messages take processor time, which computation then lacks.
  const auto undisturbed = [](const Traffic& traffic) {
    return traffic.burst_seconds > 0 ? std::min(traffic.burst_seconds, traffic.seconds) : traffic.seconds;
  };
  // An exchange moves the bytes twice.
  const double seconds = std::max(undisturbed(large) - undisturbed(small), 1e-9) / 2;
  const double processor = std::max(large_processor - small_processor, 0.0) / 2;  // at one rank
  const double bytes = kLarge - kSmall;
  return model::Link{.from = resource_type,
                     .to = resource_type,
                     .latency_seconds = undisturbed(small) / 2 / messages,
                     .bytes_per_second = bytes / seconds,
                     .processor_seconds_per_message = small_processor / 2 / messages,
                     .processor_seconds_per_byte = processor / bytes,
                     .processor_seconds_per_message_in_a_row = in_a_row / 2 / messages,
                     .computed_bytes_per_message = static_cast<double>(computed_bytes)};
}

// For one operation.
struct Costs {
  std::array<OperationCost, kUnits.size()> by_units;
  // In one micro-batch, of one unit and of as many as the last of kUnits; zeros where each step has one.
  std::array<OperationCost, 2> undivided;
};

// A limit below one core says what is granted, whatever else the machine did meanwhile. Single runs may be longer than
// its period, so what they take at full speed is their processor time.
void ApplyPartOfACore(double cores, std::vector<Costs>& all) {
  const auto apply = [&](OperationCost& cost) {
    cost.burst_seconds = cost.processor_seconds;
    cost.seconds = cost.processor_seconds / cores;
    cost.spread = cost.processor_spread;
  };
  for (Costs& costs : all) {
    std::ranges::for_each(costs.by_units, apply);
    std::ranges::for_each(costs.undivided, apply);
  }
}

// Where a CPU limit holds the operations up, their seconds in the long run follow from their processor time: the
// limit's periods are long compared with the measurement of one operation, but not with that of all. For the same
// reason the spread is that of the processor time.
void ApplyLimit(double seconds_per_processor_second, std::vector<Costs>& all) {
  std::vector<RunTimes> times;
  for (const Costs& costs : all) {
    for (const OperationCost& cost : costs.by_units) {
      times.push_back({cost.seconds, cost.burst_seconds, cost.processor_seconds});
    }
  }
  const bool held_up = HeldUp(times);
  const auto apply = [&](OperationCost& cost) {
    if (held_up) {
      cost.seconds =
          LongRunSeconds({cost.seconds, cost.burst_seconds, cost.processor_seconds}, seconds_per_processor_second);
      cost.spread = cost.processor_spread;
    }
    cost.burst_seconds = std::min(cost.burst_seconds, cost.seconds);
  };
  for (Costs& costs : all) {
    std::ranges::for_each(costs.by_units, apply);
    std::ranges::for_each(costs.undivided, apply);
  }
}

// Measures all operations without a pause, so that the processor time of all of it is what a CPU limit grants.
absl::StatusOr<std::vector<Costs>> TimeComputation(const StepTimerContext& context, const model::TrainingSpec& training,
                                                   double cores, double budget_seconds) {
  const int batch = training.batch_size, micros = std::max(1, training.micro_batches);
  std::vector<Costs> all(context.graph.operations.size());
  const base::SteadyTime begin = context.clock.Steady();
  const double processor = base::ProcessorSeconds();
  for (const model::OperationRange& part :
       MeasuredTogether(context.graph, StateFactor(context.optimizer.kind), batch)) {
    const double budget = budget_seconds * static_cast<double>(part.end - part.first) /
                          static_cast<double>(all.size()) / static_cast<double>(kConfigurations);
    const auto time = [&](int samples, int micro_batches, auto&& cost_of) -> absl::Status {
      MEDLEY_ASSIGN_OR_RETURN(const std::vector<OperationCost> costs,
                              TimeSteps(context, part, samples, micro_batches, budget));
      for (size_t i = 0; i < costs.size(); ++i) cost_of(all[static_cast<size_t>(part.first) + i]) = costs[i];
      return absl::OkStatus();
    };
    for (size_t k = 0; k < kUnits.size(); ++k) {
      const int samples = std::max(1, static_cast<int>(batch / kUnits[k]));
      MEDLEY_RETURN_IF_ERROR(time(samples, micros, [k](Costs& costs) -> OperationCost& { return costs.by_units[k]; }));
    }
    if (micros == 1) continue;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const int samples = std::max(1, static_cast<int>(batch / (k == 0 ? kUnits.front() : kUnits.back())));
      MEDLEY_RETURN_IF_ERROR(time(samples, 1, [k](Costs& costs) -> OperationCost& { return costs.undivided[k]; }));
    }
  }
  const double spent = base::ProcessorSeconds() - processor;
  if (cores > 0 && cores < 1) {
    ApplyPartOfACore(cores, all);
    return all;
  }
  ApplyLimit(spent > 0 ? base::ToSeconds(context.clock.Steady() - begin) / spent : 1, all);
  return all;
}

// Before a part of the model is made that takes more than the process may have: no unit of the pool can train it.
absl::Status CheckModelFits(const ProfilerOptions& options, const model::Profile& profile, const Dataset& data) {
  // It is in the device's memory, of which too little is a sentence of its own.
  if (options.device != nullptr) return absl::OkStatus();
  program::ProcessOptions needs;
  needs.tensors.samples = profile.profile_batch_size;
  needs.tensors.state_factor = profile.state_factor;
  needs.torch = options.job.model.imported();
  needs.rows = static_cast<double>(data.rows());
  needs.row_bytes = static_cast<double>(model::SampleBytes(options.job.data.schema));
  if (data.mapped()) needs.rows = 0;
  const program::ProcessMemory memory = program::MemoryOfProfiler(profile.model, needs);
  const double least = program::LeastMemory(memory, needs.torch);
  const auto limit = static_cast<double>(CurrentMemoryRoom().limit);
  if (least <= limit) return absl::OkStatus();
  return base::OutOfRange(
      "measuring the model needs at least {} of memory, but a process of this pool may use {}. It is estimated to need "
      "{}: give a unit of the pool more memory (spec.unit.resources.memory), or train a smaller model or with a "
      "smaller batch",
      program::SizeText(least), program::SizeText(limit), program::InWords(memory));
}

void AddUsedRows(const Graph& graph, const Dataset& data, model::Model& model) {
  for (size_t i = 0; i < graph.operations.size(); ++i) {
    if (!graph.operations[i].HasTable()) continue;
    const int64_t rows = CountUsedRows(data.view(), data.shape(), graph.operations[i].parameters.front());
    model.layers[i].attributes[program::kUsedRows] = std::to_string(rows);
  }
}

absl::StatusOr<model::Profile> MeasureProfile(const ProfilerOptions& options, const Dataset& data) {
  MEDLEY_ASSIGN_OR_RETURN(Graph graph, FitGraph(options.job, data, options.root));
  // For what it refuses: before a job is planned.
  MEDLEY_RETURN_IF_ERROR(
      UseInitialWeights(options.job, options.root, data.transform().label.classes, InitialParts::kAll, graph));
  const model::TrainingSpec& training = options.job.training;
  MEDLEY_ASSIGN_OR_RETURN(const Optimizer optimizer, OptimizerOf(training));
  SampleShape of_data = graph.shape;
  of_data.fields -= graph.operations.back().negatives;  // drawn, not read
  if (!(data.shape() == of_data))
    return base::InvalidArgument("the training data does not have the features of spec.data.schema");

  model::Profile profile;
  profile.id = options.profile_id;
  profile.model = graph.ToModel();
  profile.profile_batch_size = training.batch_size;
  profile.state_factor = StateFactor(optimizer.kind);
  profile.samples_per_epoch = data.rows();
  profile.micro_batches = std::max(1, training.micro_batches);
  double device_memory = 0;
  if (options.device != nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(const device::DeviceMemory memory, options.device->Memory());
    device_memory = static_cast<double>(memory.free);
  }
  if (options.cores > 0 || device_memory > 0) {
    profile.units = {{options.resource_type, options.cores, options.cpu_period_seconds, device_memory}};
  }
  MEDLEY_RETURN_IF_ERROR(CheckModelFits(options, profile, data));
  AddUsedRows(graph, data, profile.model);
  const StepTimerContext context{.graph = graph,
                                 .data = data,
                                 .optimizer = optimizer,
                                 .seed = training.seed,
                                 .threads = options.threads,
                                 .device = options.device,
                                 .precision = PrecisionOf(options.job.training.precision),
                                 .make_block = options.make_block,
                                 .clock = *options.clock,
                                 .stop = options.stop};
  const double for_computation = kComputeShare * options.budget_seconds;
  MEDLEY_ASSIGN_OR_RETURN(std::vector<Costs> measured,
                          TimeComputation(context, training, options.cores, for_computation));
  MEDLEY_ASSIGN_OR_RETURN(
      std::vector<std::optional<model::TablesOnDevice>> tables,
      TimeTablesOnDevice(context, training.batch_size, profile.micro_batches,
                         for_computation / static_cast<double>(graph.operations.size() * kConfigurations)));
  for (int i = 0; i < static_cast<int>(graph.operations.size()); ++i) {
    model::LayerProfile layer;
    layer.resource_type = options.resource_type;
    layer.origin = "measured";
    auto& [costs, undivided] = measured[static_cast<size_t>(i)];
    layer.spread = costs[0].spread;
    layer.burst_seconds = costs[0].burst_seconds;
    layer.forward_part = costs[0].forward_part;
    layer.update_part = costs[0].update_part;
    const Operation& operation = graph.operations[static_cast<size_t>(i)];
    layer.activation_bytes = 4.0 * KeptFloats(operation);
    const auto before = costs;  // without what synchronisation takes of the processor
    MEDLEY_RETURN_IF_ERROR(
        TimeCommunication(*options.probe, operation, training.batch_size, CutWidth(graph, i), costs, layer));
    std::array<double, kUnits.size()> seconds{};
    std::transform(costs.begin(), costs.end(), seconds.begin(), [](const OperationCost& cost) { return cost.seconds; });
    layer.compute_seconds = seconds[0];
    layer.compute_parallel = ParallelFraction(kUnits, seconds);
    if (undivided[0].seconds > 0) {
      const std::array<double, 2> ends = {kUnits.front(), kUnits.back()};
      const std::array<double, 2> in_one = {undivided[0].seconds + seconds.front() - before.front().seconds,
                                            undivided[1].seconds + seconds.back() - before.back().seconds};
      layer.undivided_seconds = in_one[0];
      layer.undivided_parallel = ParallelFraction(ends, in_one);
    }
    if (std::optional<model::TablesOnDevice>& there = tables[static_cast<size_t>(i)]) {
      there->cached = CachedRowsOf(data.view(), data.shape(), operation.parameters.front(), training.batch_size);
      layer.tables = std::move(*there);
    }
    layer.measured_at = base::FormatTime(options.clock->Now());
    profile.model.layers[static_cast<size_t>(i)].profiles.push_back(std::move(layer));
  }
  MEDLEY_ASSIGN_OR_RETURN(profile.links.emplace_back(), TimeLink(*options.probe, options.resource_type,
                                                                 profile.micro_batches, BytesBetweenMessages(graph)));
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
  const SamplePlace& place = options.place;
  MEDLEY_RETURN_IF_ERROR(CheckDataFit(spec, options.root, CurrentMemoryRoom(), place));
  ReadProgress progress("the training data", *options.clock, [](const std::string& line) { base::log::Info(line); });
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> data,
                          Dataset::Load(spec.train, spec, nullptr,
                                        {.embedding_rows = options.job.model.embedding_rows,
                                         .threads = options.threads == nullptr ? 1 : options.threads->size(),
                                         .root = options.root,
                                         .stop = options.stop,
                                         .on_piece = {},
                                         .progress = &progress,
                                         .place = place,
                                         .say = [](const std::string& sentence) { base::log::Info(sentence); },
                                         .clock = options.clock}));
  for (const model::SourceSpec& source : model::EvaluationSources(spec)) {
    MEDLEY_RETURN_IF_ERROR(CheckLabels(source, spec, data->transform().label.classes, options.root, options.stop,
                                       data->transform().header));
  }
  MEDLEY_ASSIGN_OR_RETURN(const model::Profile profile, MeasureProfile(options, *data));
  PrintProfile(profile, *options.output);
  return absl::OkStatus();
}

}  // namespace medley::worker

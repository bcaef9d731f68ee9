#include "worker/profiler/step_timer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "common/base/processor_time.h"
#include "common/base/status.h"
#include "common/program/samples.h"
#include "worker/device/device.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/profiler/statistics.h"

namespace medley::worker {
namespace {

constexpr size_t kBlocks = 5;

// A measured operation.
struct Timed {
  std::unique_ptr<BlockCompute> model;
  std::shared_ptr<WholeTables> tables;                     // null: the rows come from the host
  size_t first_table = 0;                                  // of those of the assembler
  std::vector<double> forward, backward, update, singles;  // seconds of single steps
  double in_block = 0, processor_in_block = 0;             // seconds of all steps of the block
  std::vector<double> seconds, processor_seconds;          // means a step, by block
};

// A graph whose tables have as many rows as are measured, at least twice those that a step uses.
Graph WithSmallTables(Graph graph, const Optimizer& optimizer, int samples) {
  for (Operation& operation : graph.operations) {
    for (ParameterSpec& spec : operation.parameters) {
      if (!spec.sparse) continue;
      const auto row_bytes = static_cast<int64_t>(sizeof(float) * (1 + StateFloats(optimizer.kind))) * spec.columns;
      const int64_t least = int64_t{2} * samples * std::max(1, spec.fields);
      spec.rows = std::min(spec.rows, std::max(least, kMostTableBytes / std::max<int64_t>(1, row_bytes)));
      spec.stored_rows = {};
      if (spec.initializer == Initializer::kStored) spec.initializer = Initializer::kZero;
    }
  }
  return graph;
}

// Distinct keys of a table of `rows`, ascending, as such keys of a table of `kept` rows, in proportion.
void ScaleKeys(int64_t rows, int64_t kept, std::vector<uint64_t>& keys) {
  if (kept >= rows) return;
  const auto count = std::ssize(keys);
  int64_t next = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double part = static_cast<double>(keys[static_cast<size_t>(i)]) / static_cast<double>(rows);
    const auto there = static_cast<int64_t>(part * static_cast<double>(kept));
    const int64_t key = std::min(std::max(next, there), kept - count + i);
    keys[static_cast<size_t>(i)] = static_cast<uint64_t>(key);
    next = key + 1;
  }
}

int Widest(const BlockCompute& model) {
  int width = 0;
  for (const BlockValue& value : model.Inputs()) width = std::max(width, value.width);
  for (const BlockValue& value : model.Outputs()) width = std::max(width, value.width);
  return width;
}

class StepTimer {
 public:
  StepTimer(const StepTimerContext& context, int samples, int micros)
      : context_(context), samples_(samples), micros_(micros) {}

  absl::Status Make(model::OperationRange range);
  absl::StatusOr<std::vector<OperationCost>> Measure(double budget);

 private:
  // A device works on after a call has returned: its time would count for the next operation.
  absl::Status Settled() const { return context_.device == nullptr ? absl::OkStatus() : context_.device->Check(); }
  absl::Status Step();
  // The rows of a step, or their keys where a device has them.
  absl::Status GiveRows(Timed& timed, int64_t step);
  absl::Status PushRows(Timed& timed, int64_t step);
  absl::Status Block(double seconds);
  OperationCost CostOf(const Timed& timed) const;

  // A span of each value's size; all begin at the same place.
  std::vector<std::span<const float>> Constants(const std::vector<BlockValue>& values, size_t samples) const {
    std::vector<std::span<const float>> spans;
    for (const BlockValue& value : values) {
      spans.push_back(std::span(activations_).first(samples * static_cast<size_t>(value.width)));
    }
    return spans;
  }

  const StepTimerContext& context_;
  const int samples_, micros_;
  std::vector<Timed> operations_;
  std::unique_ptr<BatchAssembler> assembler_;
  std::vector<float> activations_;
  std::optional<Graph> small_;            // where a device has tables
  std::vector<ParameterSpec> assembled_;  // by table of the assembler
  PreparedStep step_;
  int64_t number_ = 0;
};

absl::Status StepTimer::Make(model::OperationRange range) {
  const bool there = context_.tables.OnDevice();
  const Graph& graph =
      there ? small_.emplace(WithSmallTables(context_.graph, context_.optimizer, samples_)) : context_.graph;
  std::vector<SeatTable> tables;
  int widest = 0;
  for (int operation = range.first; operation < range.end; ++operation) {
    Timed& timed = operations_.emplace_back();
    MEDLEY_ASSIGN_OR_RETURN(timed.model, context_.make_block(graph, {operation, operation + 1},
                                                             {.optimizer = context_.optimizer,
                                                              .seed = context_.seed,
                                                              .threads = context_.threads,
                                                              .device = context_.device,
                                                              .precision = context_.precision,
                                                              .tables = context_.tables}));
    TableKeeper* const keeper = there && !timed.model->Tables().empty() ? KeeperOf(*timed.model) : nullptr;
    if (keeper != nullptr) {
      MEDLEY_ASSIGN_OR_RETURN(timed.tables, keeper->MakeTables(context_.optimizer, context_.seed, 1));
    }
    timed.first_table = tables.size();
    for (const ParameterSpec& spec : context_.graph.operations[static_cast<size_t>(operation)].parameters) {
      if (spec.sparse) tables.push_back({spec});
    }
    widest = std::max(widest, Widest(*timed.model));
  }
  step_.rows.resize(tables.size());
  for (const SeatTable& table : tables) assembled_.push_back(table.spec);
  assembler_ = std::make_unique<BatchAssembler>(1, BatchShare{.drawn = context_.graph.operations.back().negatives},
                                                context_.data, std::move(tables));
  activations_.assign(static_cast<size_t>(samples_) * static_cast<size_t>(widest), 0.01F);
  return absl::OkStatus();
}

absl::Status StepTimer::GiveRows(Timed& timed, int64_t step) {
  BlockCompute& model = *timed.model;
  const auto of_step = std::span(step_.tables).subspan(timed.first_table, model.Tables().size());
  if (timed.tables != nullptr) {
    for (size_t t = 0; t < of_step.size(); ++t) {
      const int64_t all = assembled_[timed.first_table + t].rows;
      ScaleKeys(all, model.Tables()[t].rows, of_step[t].keys);
    }
    std::vector<std::vector<float>> none;
    MEDLEY_RETURN_IF_ERROR(timed.tables->Pull(step, of_step, none, {context_.stop}));
    for (size_t t = 0; t < of_step.size(); ++t) {
      KeeperOf(model)->SetKeys(0, static_cast<int>(t), of_step[t].keys);
      model.SetRows(0, static_cast<int>(t), {});
    }
    return absl::OkStatus();
  }
  for (size_t t = 0; t < of_step.size(); ++t) {
    std::vector<float>& rows = step_.rows[timed.first_table + t];
    rows.resize(of_step[t].keys.size() * static_cast<size_t>(of_step[t].columns), 0.01F);
    model.SetRows(0, static_cast<int>(t), rows);
  }
  return absl::OkStatus();
}

absl::Status StepTimer::PushRows(Timed& timed, int64_t step) {
  const size_t tables = timed.model->Tables().size();
  std::vector<std::span<const float>> gradients;
  for (size_t t = 0; t < tables; ++t) gradients.push_back(timed.model->RowGradients(0, static_cast<int>(t)));
  return timed.tables->Push(step, std::span(step_.tables).subspan(timed.first_table, tables), gradients, samples_,
                            {context_.stop});
}

// With everything that a trainer computes for the operations.
absl::Status StepTimer::Step() {
  const int usable = static_cast<int>(std::min<int64_t>(samples_, context_.data.rows()));
  const int64_t number = number_++;
  const int64_t step = number + (context_.tables.OnDevice() ? 1 : 0);  // the first update is that of step 1
  assembler_->AssembleRange(context_.data, number * samples_ % (context_.data.rows() - usable + 1), usable, step_);
  for (Timed& timed : operations_) {
    BlockCompute& model = *timed.model;
    model.BeginStep(
        {.step = step, .version = model.AppliedStep(), .micro_batches = micros_, .global_samples = samples_});
    if (timed.tables == nullptr) MEDLEY_RETURN_IF_ERROR(GiveRows(timed, step));
    for (std::vector<double>* part : {&timed.forward, &timed.backward, &timed.update}) part->push_back(0);
  }
  base::SteadyTime since = context_.clock.Steady();
  double processor = base::ProcessorSeconds();
  const auto add = [&](Timed& timed, std::vector<double>& part) {
    const double spent = base::ProcessorSeconds();
    timed.processor_in_block += spent - std::exchange(processor, spent);
    const base::SteadyTime now = context_.clock.Steady();
    part.back() += base::ToSeconds(now - std::exchange(since, now));
  };
  for (Timed& timed : operations_) {
    if (timed.tables == nullptr) continue;
    MEDLEY_RETURN_IF_ERROR(GiveRows(timed, step));
    MEDLEY_RETURN_IF_ERROR(Settled());
    add(timed, timed.forward);
  }
  for (int micro = 0; micro < micros_; ++micro) {
    const program::SampleRange range = program::MicroBatch(usable, micro, micros_);
    if (range.count == 0) continue;  // fewer samples than micro-batches
    const auto count = static_cast<size_t>(range.count);
    const BatchView view = step_.batch.View(range.first, range.count);
    for (Timed& timed : operations_) {
      if (context_.stop.stop_requested()) return base::Cancelled("profiling was stopped");
      MEDLEY_RETURN_IF_ERROR(timed.model->Forward({0, micro}, view, Constants(timed.model->Inputs(), count)).status());
      MEDLEY_RETURN_IF_ERROR(Settled());
      add(timed, timed.forward);
    }
    for (auto timed = operations_.rbegin(); timed != operations_.rend(); ++timed) {
      if (context_.stop.stop_requested()) return base::Cancelled("profiling was stopped");
      MEDLEY_RETURN_IF_ERROR(timed->model->Backward({0, micro}, Constants(timed->model->Outputs(), count)).status());
      MEDLEY_RETURN_IF_ERROR(Settled());
      add(*timed, timed->backward);
    }
  }
  for (Timed& timed : operations_) {
    MEDLEY_RETURN_IF_ERROR(timed.model->ApplyUpdate(context_.optimizer));
    if (timed.tables != nullptr) MEDLEY_RETURN_IF_ERROR(PushRows(timed, step));
    MEDLEY_RETURN_IF_ERROR(Settled());
    add(timed, timed.update);
    const double single = timed.forward.back() + timed.backward.back() + timed.update.back();
    timed.singles.push_back(single);
    timed.in_block += single;
  }
  return absl::OkStatus();
}

// Measures steps for `seconds`, at least one. What a step takes of the processor beside its operations, for its batch,
// is theirs in proportion.
absl::Status StepTimer::Block(double seconds) {
  for (Timed& timed : operations_) timed.in_block = timed.processor_in_block = 0;
  const base::SteadyTime begin = context_.clock.Steady();
  const double processor = base::ProcessorSeconds();
  int steps = 0;
  do {
    MEDLEY_RETURN_IF_ERROR(Step());
    ++steps;
  } while (base::ToSeconds(context_.clock.Steady() - begin) < seconds);
  const double all = base::ProcessorSeconds() - processor;
  double own = 0;
  for (const Timed& timed : operations_) own += timed.processor_in_block;
  for (Timed& timed : operations_) {
    timed.seconds.push_back(timed.in_block / steps);
    timed.processor_seconds.push_back(own > 0 ? all * (timed.processor_in_block / own) / steps : 0);
  }
  return absl::OkStatus();
}

// Not the fastest block: a CPU limit lets single blocks pass faster than it allows in the long run.
OperationCost StepTimer::CostOf(const Timed& timed) const {
  OperationCost cost{.seconds = Median(timed.seconds), .spread = Spread(timed.seconds)};
  cost.processor_spread = Spread(timed.processor_seconds);
  cost.processor_seconds = Median(timed.processor_seconds);
  cost.burst_seconds = Median(timed.singles);
  const double forward = Median(timed.forward), update = Median(timed.update);
  if (const double all = forward + Median(timed.backward) + update; all > 0) {
    cost.forward_part = forward / all;
    cost.update_part = update / all;
  }
  if (!timed.model->Tables().empty()) cost.rows = std::ssize(step_.tables[timed.first_table].keys);
  if (timed.tables != nullptr) cost.tables = KeeperOf(*timed.model)->Counts();
  return cost;
}

absl::StatusOr<std::vector<OperationCost>> StepTimer::Measure(double budget) {
  const base::SteadyTime begin = context_.clock.Steady();
  MEDLEY_RETURN_IF_ERROR(Step());  // a warm-up
  for (Timed& timed : operations_) {
    for (std::vector<double>* part : {&timed.forward, &timed.backward, &timed.update, &timed.singles}) part->clear();
  }
  // Each block is long compared with the period of a CPU limit (10 to 100 ms), and there is at least one, however slow
  // the machine is. Single steps can fit within one period, which would hide the limit.
  size_t blocks = 0;
  do {
    MEDLEY_RETURN_IF_ERROR(Block(budget / kBlocks));
  } while (++blocks < kBlocks && base::ToSeconds(context_.clock.Steady() - begin) < 4 * budget);
  std::vector<OperationCost> costs;
  for (const Timed& timed : operations_) costs.push_back(CostOf(timed));
  return costs;
}

}  // namespace

std::vector<model::OperationRange> MeasuredTogether(const Graph& graph, double state_factor, int samples) {
  std::vector<model::OperationRange> parts;
  double held = 0;  // bytes of the last part
  for (int i = 0; i < static_cast<int>(graph.operations.size()); ++i) {
    const Operation& operation = graph.operations[static_cast<size_t>(i)];
    double bytes = 2 * 4.0 * operation.output_width * samples;  // outputs and their gradients
    for (const ParameterSpec& spec : operation.parameters) {
      // Values, gradients and optimizer state; and the values before the last update.
      if (!spec.sparse) bytes += 4.0 * static_cast<double>(spec.Size()) * (state_factor + 1);
    }
    if (parts.empty() || held + bytes > static_cast<double>(kMeasuredTogetherBytes)) {
      parts.push_back({i, i});
      held = 0;
    }
    parts.back().end = i + 1;
    held += bytes;
  }
  return parts;
}

absl::StatusOr<std::vector<OperationCost>> TimeSteps(const StepTimerContext& context, model::OperationRange range,
                                                     int samples, int micros, double budget) {
  MEDLEY_CHECK(range.first < range.end, "no operation to measure");
  StepTimer timer(context, samples, micros);
  MEDLEY_RETURN_IF_ERROR(timer.Make(range));
  return timer.Measure(budget);
}

}  // namespace medley::worker

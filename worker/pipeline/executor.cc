#include "worker/pipeline/executor.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/program/samples.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/instruction_runner.h"
#include "worker/pipeline/prefetcher.h"
#include "worker/pipeline/probe.h"
#include "worker/pipeline/reduced_samples.h"
#include "worker/pipeline/row_stager.h"
#include "worker/pipeline/sequence.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker {

using program::Binding;
using program::Block;
using program::Instruction;
using program::Program;

class Executor::Rep {
 public:
  Rep(const Programs& programs, int device, Sequence training, Sequence evaluation, ExecutorParts parts,
      const Optimizer& optimizer, uint64_t seed)
      : programs_(programs),
        training_(std::move(training)),
        evaluation_(std::move(evaluation)),
        parts_(std::move(parts)),
        optimizer_(optimizer),
        seed_(seed),
        seat_of_(SeatsOf(programs.training, training_)),
        open_(static_cast<size_t>(training_.depth)),
        evaluator_(1, Share(seed), *parts_.data, Tables()),
        prefetcher_(BatchAssembler(programs.training.micro_batches, Share(seed), *parts_.data, Tables()), parts_.sparse,
                    *parts_.clock, Stager()),
        runner_(programs.training, device, training_, seat_of_, parts_, optimizer) {}

  void Prefetch(const StepLease& lease) {
    Align();
    prefetcher_.Add(lease, VersionOf(lease.step));
  }
  absl::StatusOr<std::optional<StepResult>> RunStep(const StepLease& lease, const WaitLimit& limit);
  absl::StatusOr<std::optional<StepResult>> Drain(const WaitLimit& limit);
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options);
  absl::StatusOr<double> Probe(int count, base::nanoseconds pause);
  void Drop() {
    LoseOpenSteps();
    prefetcher_.Drop();
  }

 private:
  // A step that has begun and not ended.
  struct OpenStep {
    std::unique_ptr<PreparedStep> data;
    size_t pushes = 0;  // instructions so far
  };

  BlockCompute& ComputeOf(int block) const { return *parts_.blocks[static_cast<size_t>(block)]; }
  size_t SeatOf(int block) const { return seat_of_[static_cast<size_t>(block)]; }
  // The table operations of this device, in the order of its blocks.
  std::vector<SeatTable> Tables() const {
    std::vector<SeatTable> tables;
    for (const int block : training_.blocks) {
      for (const ParameterSpec& spec : ComputeOf(block).Tables()) tables.push_back({spec, SeatOf(block)});
    }
    return tables;
  }
  // Gives rows that were pulled ahead to the blocks that take them. Unset: none does.
  Prefetcher::Stage Stager() const {
    std::vector<RowStager*> stagers;  // by table
    std::vector<int> numbers;         // of the table in its block
    for (const int block : training_.blocks) {
      auto* const stager = dynamic_cast<RowStager*>(&ComputeOf(block));
      for (size_t t = 0; t < ComputeOf(block).Tables().size(); ++t) {
        stagers.push_back(stager);
        numbers.push_back(static_cast<int>(t));
      }
    }
    if (std::ranges::all_of(stagers, [](const RowStager* stager) { return stager == nullptr; })) return {};
    return [stagers, numbers](const PreparedStep& step) {
      for (size_t t = 0; t < stagers.size(); ++t) {
        if (stagers[t] == nullptr) continue;
        MEDLEY_RETURN_IF_ERROR(stagers[t]->StageRows(step.lease.step, numbers[t], step.rows[t]));
      }
      return absl::OkStatus();
    };
  }
  BatchShare Share(uint64_t seed) const {
    BatchShare share{
        .seats = {}, .seed = seed, .blocks = parts_.blocks_of_data, .parts = parts_.reads, .drawn = parts_.drawn};
    for (const Sequence::Seat& seat : training_.seats) {
      const double* cuts = programs_.training.layouts[static_cast<size_t>(seat.layout)].cuts.data() + seat.replica;
      share.seats.push_back({cuts[0], cuts[1]});
    }
    return share;
  }
  // The samples of a batch of `count` whose gradients the replica of a block adds.
  int SamplesOf(int block, int count) {
    const int replica = training_.seats[SeatOf(block)].replica;
    return ReducedSamples(programs_.training, BindingOf(count), block, replica, count);
  }

  bool Idle() const { return completed_ == begun_; }
  void LoseOpenSteps() {
    runner_.EndReductions();
    completed_ = begun_;
  }
  void Align();
  int64_t VersionOf(int64_t step) const { return std::max(drained_, step - training_.lag); }
  int SlotOf(int64_t step) const { return static_cast<int>(step % training_.depth); }
  OpenStep& Open(int64_t step) { return open_[static_cast<size_t>(SlotOf(step))]; }
  absl::Status BeginStep(const StepLease& lease, const WaitLimit& limit);
  absl::StatusOr<std::optional<StepResult>> Iterate(const WaitLimit& limit);
  absl::Status RunEntries(const WaitLimit& limit);
  absl::StatusOr<StepResult> EndStep(int64_t step);
  template <typename Work>
  absl::StatusOr<std::optional<StepResult>> Measured(const Work& work);
  const Binding& BindingOf(int count);

  const Programs& programs_;
  const Sequence training_, evaluation_;
  const ExecutorParts parts_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const std::vector<size_t> seat_of_;
  base::nanoseconds data_{0};
  int64_t iteration_ = 0;
  int64_t begun_ = 0;           // the last step that has begun
  int64_t completed_ = 0;       // the last that has ended; smaller ones have too
  int64_t drained_ = 0;         // the last step before which all steps had ended when the next one began
  std::vector<OpenStep> open_;  // by slot
  std::vector<std::unique_ptr<Binding>> bindings_;  // of the full and the last batch
  PreparedStep chunk_;
  BatchAssembler evaluator_;
  Prefetcher prefetcher_;
  InstructionRunner runner_;  // last: its threads use the others
};

const Binding& Executor::Rep::BindingOf(int count) {
  for (const auto& binding : bindings_) {
    if (binding->count() == count) return *binding;
  }
  if (bindings_.size() == 2) bindings_.erase(bindings_.begin());
  bindings_.push_back(std::make_unique<Binding>(programs_.training, count));
  return *bindings_.back();
}

// Without an open step, the next one follows on what the blocks have applied.
void Executor::Rep::Align() {
  if (!Idle()) return;
  int64_t applied = std::numeric_limits<int64_t>::max();
  for (const int block : training_.blocks) applied = std::min(applied, ComputeOf(block).AppliedStep());
  begun_ = completed_ = drained_ = applied;
}

absl::Status Executor::Rep::BeginStep(const StepLease& lease, const WaitLimit& limit) {
  Align();
  for (const int block : training_.blocks) {
    if (!Idle() || lease.step == ComputeOf(block).AppliedStep() + 1) continue;
    return base::FailedPrecondition("got the lease of step {}, but the parameters have applied step {}", lease.step,
                                    ComputeOf(block).AppliedStep());
  }
  if (lease.step != begun_ + 1) {
    return base::FailedPrecondition("got the lease of step {}, but step {} was the last to begin", lease.step, begun_);
  }
  auto taken = runner_.Timed([&] { return prefetcher_.Take(lease, VersionOf(lease.step), limit); });
  if (!taken.ok()) return taken.status();
  data_ += (*taken)->waited;
  runner_.comm() -= (*taken)->waited;
  OpenStep& open = Open(lease.step);
  open = {*std::move(taken)};
  size_t table = 0;
  for (const int block : training_.blocks) {
    BlockCompute& compute = ComputeOf(block);
    compute.BeginStep({.step = lease.step,
                       .version = VersionOf(lease.step),
                       .slot = SlotOf(lease.step),
                       .micro_batches = programs_.training.micro_batches,
                       .global_samples = SamplesOf(block, lease.count)});
    table = GiveRows(compute, SlotOf(lease.step), open.data->tables, open.data->rows, table);
  }
  iteration_ = begun_ = lease.step;
  return absl::OkStatus();
}

absl::Status Executor::Rep::RunEntries(const WaitLimit& limit) {
  for (const Sequence::Entry& entry : training_.entries) {
    const int64_t step = iteration_ - entry.shift;
    if (step <= completed_ || step > begun_) continue;
    OpenStep& open = Open(step);
    RunningStep running{.program = programs_.training,
                        .binding = BindingOf(open.data->lease.count),
                        .data = *open.data,
                        .number = step,
                        .slot = SlotOf(step),
                        .pushes = &open.pushes,
                        .limit = limit};
    const Instruction& instruction = programs_.training.instructions[static_cast<size_t>(entry.instruction)];
    MEDLEY_RETURN_IF_ERROR(runner_.Execute(instruction, running));
  }
  return absl::OkStatus();
}

// Returns the step whose last entry was executed.
absl::StatusOr<std::optional<StepResult>> Executor::Rep::Iterate(const WaitLimit& limit) {
  MEDLEY_RETURN_IF_ERROR(RunEntries(limit));
  const int64_t ended = iteration_ + 1 - training_.depth;
  if (ended <= completed_) return std::nullopt;
  MEDLEY_ASSIGN_OR_RETURN(const StepResult result, EndStep(ended));
  completed_ = ended;
  return result;
}

// A block without dense parameters counts the step too.
absl::StatusOr<StepResult> Executor::Rep::EndStep(int64_t step) {
  StepResult result{.step = step};
  for (const int block : training_.blocks) {
    result.loss_sum += ComputeOf(block).LossSum(SlotOf(step));
    result.loss_samples += ComputeOf(block).LossSamples(SlotOf(step));
    if (programs_.training.blocks[static_cast<size_t>(block)].dense) continue;
    MEDLEY_RETURN_IF_ERROR(ComputeOf(block).ApplyUpdate(optimizer_.AtStep(step)));
  }
  prefetcher_.Recycle(std::move(Open(step).data));
  return result;
}

// Adds the times of one iteration to the step that it completes.
template <typename Work>
absl::StatusOr<std::optional<StepResult>> Executor::Rep::Measured(const Work& work) {
  runner_.comm() = data_ = {};
  const base::SteadyTime start = parts_.clock->Steady();
  absl::StatusOr<std::optional<StepResult>> result = work();
  if (!result.ok()) LoseOpenSteps();
  if (!result.ok() || !result->has_value()) return result;
  const base::nanoseconds comm = runner_.comm();
  (*result)->comm_seconds = base::ToSeconds(comm);
  (*result)->data_seconds = base::ToSeconds(data_);
  (*result)->compute_seconds = base::ToSeconds(parts_.clock->Steady() - start - comm - data_);
  return result;
}

absl::StatusOr<std::optional<StepResult>> Executor::Rep::RunStep(const StepLease& lease, const WaitLimit& limit) {
  return Measured([&]() -> absl::StatusOr<std::optional<StepResult>> {
    MEDLEY_RETURN_IF_ERROR(BeginStep(lease, limit));
    return Iterate(limit);
  });
}

absl::StatusOr<std::optional<StepResult>> Executor::Rep::Drain(const WaitLimit& limit) {
  return Measured([&]() -> absl::StatusOr<std::optional<StepResult>> {
    while (!Idle()) {
      ++iteration_;
      MEDLEY_ASSIGN_OR_RETURN(const std::optional<StepResult> result, Iterate(limit));
      if (result) return result;
    }
    return std::nullopt;
  });
}

absl::StatusOr<ScoreSums> Executor::Rep::Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options) {
  if (!Idle()) return base::FailedPrecondition("step {} is open, so nothing can be evaluated", begun_);
  if (!(test.shape() == parts_.data->shape()) || options.chunk <= 0) {
    return base::InvalidArgument(
        "the test data has {} fields and {} numeric columns per sample, the training data {} and {}",
        test.shape().fields, test.shape().numerics, parts_.data->shape().fields, parts_.data->shape().numerics);
  }
  Scorer scorer(options.scoring);
  int64_t number = 0;
  for (int64_t first = 0; first < test.rows(); first += options.chunk, ++number) {
    if (options.stop.stop_requested()) return base::Cancelled("the evaluation at step {} was stopped", step);
    const int count = static_cast<int>(std::min<int64_t>(options.chunk, test.rows() - first));
    const WaitLimit limit{options.stop, parts_.clock->Steady() + options.chunk_timeout};
    evaluator_.AssembleRange(test, first, count, chunk_);
    if (!chunk_.tables.empty()) {
      MEDLEY_RETURN_IF_ERROR(parts_.sparse->Pull(step + 1, chunk_.tables, chunk_.rows, limit));
      size_t table = 0;
      for (const int block : training_.blocks) {
        table = GiveRows(ComputeOf(block), 0, chunk_.tables, chunk_.rows, table);
      }
    }
    const Binding binding(programs_.evaluation, count);
    RunningStep running{.program = programs_.evaluation,
                        .binding = binding,
                        .data = chunk_,
                        .evaluation = true,
                        .number = number,
                        .scorer = &scorer,
                        .limit = limit};
    for (const Sequence::Entry& entry : evaluation_.entries) {
      MEDLEY_RETURN_IF_ERROR(
          runner_.Execute(programs_.evaluation.instructions[static_cast<size_t>(entry.instruction)], running));
    }
    if (options.on_chunk) options.on_chunk();
  }
  const bool scores = std::ranges::any_of(training_.blocks, [&](int block) { return ComputeOf(block).IsLast(); });
  return scores ? scorer.scores() : ScoreSums();
}

absl::StatusOr<double> Executor::Rep::Probe(int count, base::nanoseconds pause) {
  if (!Idle()) return base::FailedPrecondition("step {} is open, so the device does not stand by", begun_);
  count = static_cast<int>(std::min<int64_t>(count, parts_.data->rows()));
  ProbedWork work{.blocks = {},
                  .tables = Tables(),
                  .share = Share(seed_),
                  .micro_batches = programs_.training.micro_batches,
                  .data = parts_.data,
                  .clock = parts_.clock};
  for (const int block : training_.blocks) {
    work.blocks.push_back({&ComputeOf(block), SeatOf(block), SamplesOf(block, count)});
  }
  return ProbePasses(work, count, pause);
}

namespace {

// A block computes with what the program gives it and gives what the program passes on.
absl::Status CheckValues(const Program& program, const std::vector<int>& values,
                         const std::vector<BlockValue>& computed) {
  const auto equal = [&](int index, const BlockValue& other) {
    const program::Value& value = program.values[static_cast<size_t>(index)];
    return value.operation == other.operation &&
           value.bytes_per_sample == static_cast<int64_t>(sizeof(float)) * other.width;
  };
  if (std::ranges::equal(values, computed, equal)) return absl::OkStatus();
  return base::InvalidArgument("the program and the model disagree about the values that pass between blocks");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Programs& programs, int device, ExecutorParts parts,
                                                           const Optimizer& optimizer, uint64_t seed) {
  MEDLEY_ASSIGN_OR_RETURN(Sequence training, SequenceOf(programs.training, device));
  MEDLEY_ASSIGN_OR_RETURN(Sequence evaluation, SequenceOf(programs.evaluation, device));
  for (const int b : training.blocks) {
    const Block& block = programs.training.blocks[static_cast<size_t>(b)];
    const BlockCompute& compute = *parts.blocks[static_cast<size_t>(b)];
    MEDLEY_RETURN_IF_ERROR(CheckValues(programs.training, block.inputs, compute.Inputs()));
    MEDLEY_RETURN_IF_ERROR(CheckValues(programs.training, block.outputs, compute.Outputs()));
  }
  return std::unique_ptr<Executor>(new Executor(std::make_unique<Rep>(
      programs, device, std::move(training), std::move(evaluation), std::move(parts), optimizer, seed)));
}

Executor::Executor(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Executor::~Executor() = default;
void Executor::Prefetch(const StepLease& lease) { rep_->Prefetch(lease); }
absl::StatusOr<std::optional<StepResult>> Executor::RunStep(const StepLease& lease, const WaitLimit& limit) {
  return rep_->RunStep(lease, limit);
}
absl::StatusOr<std::optional<StepResult>> Executor::Drain(const WaitLimit& limit) { return rep_->Drain(limit); }
absl::StatusOr<ScoreSums> Executor::Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options) {
  return rep_->Evaluate(test, step, options);
}
absl::StatusOr<double> Executor::Probe(int count, base::nanoseconds pause) { return rep_->Probe(count, pause); }
void Executor::DropPrefetched() { rep_->Drop(); }

}  // namespace medley::worker

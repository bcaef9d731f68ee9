#include "worker/pipeline/executor.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/program/samples.h"
#include "common/program/text.h"
#include "worker/pipeline/average.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/clip.h"
#include "worker/pipeline/prefetcher.h"
#include "worker/pipeline/probe.h"
#include "worker/pipeline/reduced_samples.h"
#include "worker/pipeline/reduction_thread.h"
#include "worker/pipeline/sequence.h"
#include "worker/pipeline/shared_gradients.h"
#include "worker/pipeline/value_store.h"
#include "worker/pipeline/whole_tables.h"

namespace medley::worker {

using program::Binding;
using program::Block;
using program::Flow;
using program::Instruction;
using program::Kind;
using program::Program;
using program::SampleRange;

class Executor::Rep {
 public:
  Rep(const Programs& programs, int device, Sequence training, Sequence evaluation, ExecutorParts parts,
      const Optimizer& optimizer, uint64_t seed)
      : programs_(programs),
        device_(device),
        training_(std::move(training)),
        evaluation_(std::move(evaluation)),
        parts_(std::move(parts)),
        optimizer_(optimizer),
        seed_(seed),
        seat_of_(SeatsOf(programs.training, training_)),
        open_(static_cast<size_t>(training_.depth)),
        values_(programs.training, Interleaved(programs.training, training_),
                programs.training.micro_batches * training_.depth),
        evaluator_(1, Share(seed), *parts_.data, Tables()),
        prefetcher_(BatchAssembler(programs.training.micro_batches, Share(seed), *parts_.data, Tables()), parts_.sparse,
                    *parts_.clock) {
    const auto reductions = std::ranges::count_if(training_.blocks, [&](int b) { return BlockAt(b).group >= 0; });
    // With several seats, a peer may need what this device computes after its part of a reduction.
    if (reductions > 1 || (reductions > 0 && (training_.seats.size() > 1 || training_.depth > 1))) {
      reductions_.emplace(programs_.training, training_.blocks, *parts_.reducer);
    }
  }

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
  // A step, or a chunk of test data, on its way through the instructions.
  struct Running {
    const Program& program;
    const Binding& binding;
    const PreparedStep& data;
    bool evaluation = false;
    int64_t number = 0;        // of the step or chunk
    int slot = 0;              // of the open steps
    Scorer* scorer = nullptr;  // evaluation
    size_t* pushes = nullptr;  // of the step
    const WaitLimit& limit;

    // The place of a micro-batch in the value store.
    int At(int micro) const { return slot * program.micro_batches + micro; }
  };

  // Runs `work` and adds its duration to the step's communication time.
  template <typename Work>
  auto Timed(const Work& work) {
    const base::SteadyTime start = parts_.clock->Steady();
    auto result = work();
    comm_ += parts_.clock->Steady() - start;
    return result;
  }

  const Block& BlockAt(int block) const { return programs_.training.blocks[static_cast<size_t>(block)]; }
  const Block& BlockOf(const Instruction& instruction) const { return BlockAt(instruction.block); }
  BlockCompute& ComputeOf(int block) const { return *parts_.blocks[static_cast<size_t>(block)]; }
  // The table operations of this device, in the order of its blocks.
  std::vector<SeatTable> Tables() const {
    std::vector<SeatTable> tables;
    for (const int block : training_.blocks) {
      for (const ParameterSpec& spec : ComputeOf(block).Tables()) tables.push_back({spec, SeatOf(block)});
    }
    return tables;
  }
  size_t SeatOf(int block) const { return seat_of_[static_cast<size_t>(block)]; }
  BatchShare Share(uint64_t seed) const {
    BatchShare share{
        .seats = {}, .seed = seed, .blocks = parts_.blocks_of_data, .parts = parts_.reads, .drawn = parts_.drawn};
    for (const Sequence::Seat& seat : training_.seats) {
      const double* cuts = programs_.training.layouts[static_cast<size_t>(seat.layout)].cuts.data() + seat.replica;
      share.seats.push_back({cuts[0], cuts[1]});
    }
    return share;
  }

  absl::Status Execute(const Instruction& instruction, Running& running);
  absl::Status Move(const Instruction& instruction, Running& running);
  std::span<const float> Source(const Flow& flow, int micro) const {
    return flow.gradient ? values_.Gradient(flow.value, flow.from_layout, micro) : values_.Value(flow.value, micro);
  }
  absl::Status Forward(const Instruction& instruction, Running& running);
  absl::Status Backward(const Instruction& instruction, Running& running);
  absl::Status Push(const Instruction& instruction, Running& running);
  absl::Status Reduce(const Instruction& instruction, Running& running);
  // Until another thread has reduced the gradients of the block.
  absl::Status AwaitReduction(int block) {
    if (!reductions_.has_value() || BlockAt(block).group < 0) return absl::OkStatus();
    return Timed([&] { return reductions_->Of(block).Wait(block); });
  }
  absl::Status Share(const Instruction& instruction, Running& running);
  absl::Status Norm(Running& running);
  absl::Status Update(const Instruction& instruction, Running& running);
  absl::Status Average(const Instruction& instruction, Running& running);
  bool Idle() const { return completed_ == begun_; }
  void LoseOpenSteps() {
    if (reductions_.has_value()) reductions_->Reset();  // they use the gradients
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
  const int device_;
  const Sequence training_, evaluation_;
  const ExecutorParts parts_;
  const Optimizer optimizer_;
  const uint64_t seed_;
  const std::vector<size_t> seat_of_;
  base::nanoseconds comm_{0}, data_{0};
  int64_t iteration_ = 0;
  int64_t begun_ = 0;            // the last step that has begun
  int64_t completed_ = 0;        // the last that has ended; smaller ones have too
  int64_t drained_ = 0;          // the last step before which all steps had ended when the next one began
  std::vector<float> averaged_;  // parameters and optimizer state of a block
  std::vector<OpenStep> open_;   // by slot
  std::vector<std::unique_ptr<Binding>> bindings_;  // of the full and the last batch
  ValueStore values_;
  PreparedStep chunk_;
  BatchAssembler evaluator_;
  Prefetcher prefetcher_;
  std::optional<ReductionThreads> reductions_;  // last: its threads use the others
};

const Binding& Executor::Rep::BindingOf(int count) {
  for (const auto& binding : bindings_) {
    if (binding->count() == count) return *binding;
  }
  if (bindings_.size() == 2) bindings_.erase(bindings_.begin());
  bindings_.push_back(std::make_unique<Binding>(programs_.training, count));
  return *bindings_.back();
}

absl::Status Executor::Rep::Execute(const Instruction& instruction, Running& running) {
  if (running.limit.stop.stop_requested()) {
    return base::Cancelled("{} of step {} was stopped", program::Text(running.program, instruction, {}),
                           running.number);
  }
  switch (instruction.kind) {
    case Kind::kSend:
    case Kind::kReceive:
      return Move(instruction, running);
    case Kind::kForward:
      return Forward(instruction, running);
    case Kind::kBackward:
      return Backward(instruction, running);
    case Kind::kSum:
      values_.Sum(instruction.gradient, running.At(instruction.micro));
      return absl::OkStatus();
    case Kind::kPushRows:
      return Push(instruction, running);
    case Kind::kAllReduce:
      return Reduce(instruction, running);
    case Kind::kShare:
      return Share(instruction, running);
    case Kind::kNorm:
      return Norm(running);
    case Kind::kUpdate:
      return Update(instruction, running);
    case Kind::kAverage:
      return Average(instruction, running);
    default:
      return base::Internal("{} has no place in the sequence of a device",
                            program::Text(running.program, instruction, {}));
  }
}

// Sends the peer's samples of a value or gradient, or receives the peer's samples into their place; from the device
// itself they are copied. Nothing is sent for an empty range, as both sides know.
absl::Status Executor::Rep::Move(const Instruction& instruction, Running& running) {
  const bool send = instruction.kind == Kind::kSend;
  const Flow& flow = running.program.flows[static_cast<size_t>(instruction.flow)];
  const program::Value& value = running.program.values[static_cast<size_t>(flow.value)];
  const program::Layout& other = running.program.layouts[static_cast<size_t>(send ? flow.to_layout : flow.from_layout)];
  const auto peer = static_cast<int>(std::ranges::find(other.devices, instruction.peer) - other.devices.begin());
  const program::Pair pair = send ? program::Pair{instruction.replica, peer} : program::Pair{peer, instruction.replica};
  const SampleRange moved = running.binding.Moved(flow, pair, instruction.micro);
  const SampleRange mine =
      running.binding.Replica(send ? flow.from_layout : flow.to_layout, instruction.replica, instruction.micro);
  const size_t width = static_cast<size_t>(value.bytes_per_sample) / sizeof(float);
  const size_t at = static_cast<size_t>(moved.first - mine.first) * width;
  const size_t size = static_cast<size_t>(moved.count) * width;
  const Tag tag{running.evaluation, instruction.flow, running.number, instruction.micro};
  if (!send) {
    std::vector<float>& into = values_.Received(instruction.flow, running.At(instruction.micro));
    into.resize(static_cast<size_t>(mine.count) * width);
    if (size == 0) return absl::OkStatus();
    if (instruction.peer == device_) {
      const SampleRange source = running.binding.Replica(flow.from_layout, pair.from, instruction.micro);
      const std::span<const float> from = Source(flow, running.At(instruction.micro));
      std::ranges::copy(from.subspan(static_cast<size_t>(moved.first - source.first) * width, size),
                        into.begin() + static_cast<ptrdiff_t>(at));
      return absl::OkStatus();
    }
    return Timed(
        [&] { return parts_.channel->Recv(tag, instruction.peer, std::span(into).subspan(at, size), running.limit); });
  }
  if (size == 0) return absl::OkStatus();
  const std::span<const float> from = Source(flow, running.At(instruction.micro));
  return Timed([&] { return parts_.channel->Send(tag, instruction.peer, from.subspan(at, size), running.limit); });
}

absl::Status Executor::Rep::Forward(const Instruction& instruction, Running& running) {
  const int micro = instruction.micro;
  const SampleRange mine = running.data.micros[SeatOf(instruction.block)][static_cast<size_t>(micro)];
  const BatchView features = running.data.batch.View(mine.first, mine.count);
  BlockCompute& compute = ComputeOf(instruction.block);
  const Values inputs = values_.InputsOf(instruction.block, running.At(micro));
  const int layout = BlockOf(instruction).layout;
  const Pass pass{
      running.slot, micro,
      running.binding.Micro(micro).first + running.binding.Replica(layout, instruction.replica, micro).first};
  MEDLEY_ASSIGN_OR_RETURN(const Values outputs, running.evaluation ? compute.Infer(features, inputs)
                                                                   : compute.Forward(pass, features, inputs));
  if (running.evaluation && compute.IsLast()) {
    running.scorer->Add(outputs.front(), features.labels, features.weights);
  } else {
    values_.SetOutputs(instruction.block, running.At(micro), outputs);
  }
  return absl::OkStatus();
}

absl::Status Executor::Rep::Backward(const Instruction& instruction, Running& running) {
  const int block = instruction.block, micro = running.At(instruction.micro);
  MEDLEY_ASSIGN_OR_RETURN(const Values gradients, ComputeOf(block).Backward({running.slot, instruction.micro},
                                                                            values_.OutputGradientsOf(block, micro)));
  values_.SetInputGradients(block, micro, gradients);
  return absl::OkStatus();
}

// The gradients of all tables of this device are one push, with the last of its instructions: the owner of the rows
// counts one push of each trainer and step.
absl::Status Executor::Rep::Push(const Instruction&, Running& running) {
  if (++*running.pushes < running.data.tables.size()) return absl::OkStatus();
  std::vector<std::span<const float>> gradients;
  for (const int block : training_.blocks) {
    const BlockCompute& compute = ComputeOf(block);
    for (size_t t = 0; t < compute.Tables().size(); ++t) {
      gradients.push_back(compute.RowGradients(running.slot, static_cast<int>(t)));
    }
  }
  return Timed([&] {
    return parts_.sparse->Push(running.number, running.data.tables, gradients, running.data.lease.count, running.limit);
  });
}

absl::Status Executor::Rep::Reduce(const Instruction& instruction, Running& running) {
  const program::Group& group = running.program.groups[static_cast<size_t>(BlockOf(instruction).group)];
  const std::span<float> values = ComputeOf(instruction.block).Gradients();
  if (reductions_.has_value()) {
    reductions_->Of(instruction.block).Start(running.number, instruction.block, group, values, running.limit);
    return absl::OkStatus();
  }
  return Timed([&] { return parts_.reducer->SumAll(running.number, instruction.block, group, values, running.limit); });
}

absl::Status Executor::Rep::Update(const Instruction& instruction, Running& running) {
  MEDLEY_RETURN_IF_ERROR(AwaitReduction(instruction.block));
  return ComputeOf(instruction.block).ApplyUpdate(optimizer_.AtStep(running.number));
}

// One collective at a time: those of the other thread come first.
absl::Status Executor::Rep::Share(const Instruction& instruction, Running& running) {
  const program::Shared& shared = running.program.shared[static_cast<size_t>(instruction.gradient)];
  std::vector<SharedHolder> holders;
  for (const int block : training_.blocks) {
    if (BlockAt(block).dense) MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
    if (std::ranges::find(shared.blocks, block) == shared.blocks.end()) continue;
    holders.push_back({&ComputeOf(block), training_.seats[SeatOf(block)].replica == 0});
  }
  const auto* group = shared.group < 0 ? nullptr : &running.program.groups[static_cast<size_t>(shared.group)];
  // Alone it adds them where they are.
  if (group == nullptr && holders.size() == 1 && holders.front().counts) {
    return holders.front().block->SumCopies(shared.name);
  }
  return SumShared(shared.name, holders, [&](std::span<float> sum) {
    if (group == nullptr) return absl::OkStatus();
    return Timed([&] { return parts_.reducer->SumAll(running.number, kOfAllBlocks, *group, sum, running.limit); });
  });
}

// Clips the gradients. Those of a block are equal on all replicas: the first one counts.
absl::Status Executor::Rep::Norm(Running& running) {
  std::vector<BlockCompute*> dense;
  double squares = 0;
  for (const int block : training_.blocks) {
    if (!BlockAt(block).dense) continue;
    MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
    dense.push_back(&ComputeOf(block));
    if (training_.seats[SeatOf(block)].replica != 0) continue;
    MEDLEY_ASSIGN_OR_RETURN(const double own, dense.back()->SquaredNorm());
    squares += own;
  }
  std::array<float, 2> sum = InTwoFloats(squares);
  if (const int index = running.program.norm_group; index >= 0) {
    const auto& group = running.program.groups[static_cast<size_t>(index)];
    const auto add = [&] { return parts_.reducer->SumAll(running.number, kOfAllBlocks, group, sum, running.limit); };
    MEDLEY_RETURN_IF_ERROR(Timed(add));
  }
  const double factor = ClipFactor(optimizer_.clip_norm, FromTwoFloats(sum));
  if (factor == 1) return absl::OkStatus();
  for (BlockCompute* const block : dense) MEDLEY_RETURN_IF_ERROR(block->ScaleGradients(static_cast<float>(factor)));
  return absl::OkStatus();
}

// The mean over all replicas, in steps that agree. One collective at a time: those of the other thread come first.
absl::Status Executor::Rep::Average(const Instruction& instruction, Running& running) {
  if (!running.data.lease.agrees) return absl::OkStatus();
  for (const int block : training_.blocks) MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
  const Block& block = BlockOf(instruction);
  const program::Group& group = running.program.groups[static_cast<size_t>(block.average)];
  const int replicas = running.program.layouts[static_cast<size_t>(block.layout)].replicas(), of = instruction.block;
  return AverageReplicas(ComputeOf(of), replicas, optimizer_.kind, averaged_, [&](std::span<float> sum) {
    return Timed([&] { return parts_.reducer->SumAll(running.number, of, group, sum, running.limit); });
  });
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
  auto taken = Timed([&] { return prefetcher_.Take(lease, VersionOf(lease.step), limit); });
  if (!taken.ok()) return taken.status();
  data_ += (*taken)->waited;
  comm_ -= (*taken)->waited;
  OpenStep& open = Open(lease.step);
  open = {*std::move(taken)};
  size_t table = 0;
  for (const int block : training_.blocks) {
    BlockCompute& compute = ComputeOf(block);
    compute.BeginStep({.step = lease.step,
                       .version = VersionOf(lease.step),
                       .slot = SlotOf(lease.step),
                       .micro_batches = programs_.training.micro_batches,
                       .global_samples = ReducedSamples(programs_.training, BindingOf(lease.count), block,
                                                        training_.seats[SeatOf(block)].replica, lease.count)});
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
    Running running{.program = programs_.training,
                    .binding = BindingOf(open.data->lease.count),
                    .data = *open.data,
                    .number = step,
                    .slot = SlotOf(step),
                    .pushes = &open.pushes,
                    .limit = limit};
    MEDLEY_RETURN_IF_ERROR(Execute(programs_.training.instructions[static_cast<size_t>(entry.instruction)], running));
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
    if (BlockAt(block).dense) continue;
    MEDLEY_RETURN_IF_ERROR(ComputeOf(block).ApplyUpdate(optimizer_.AtStep(step)));
  }
  prefetcher_.Recycle(std::move(Open(step).data));
  return result;
}

// Adds the times of one iteration to the step that it completes.
template <typename Work>
absl::StatusOr<std::optional<StepResult>> Executor::Rep::Measured(const Work& work) {
  comm_ = data_ = {};
  const base::SteadyTime start = parts_.clock->Steady();
  absl::StatusOr<std::optional<StepResult>> result = work();
  if (!result.ok()) LoseOpenSteps();
  if (!result.ok() || !result->has_value()) return result;
  (*result)->comm_seconds = base::ToSeconds(comm_);
  (*result)->data_seconds = base::ToSeconds(data_);
  (*result)->compute_seconds = base::ToSeconds(parts_.clock->Steady() - start - comm_ - data_);
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
    Running running{.program = programs_.evaluation,
                    .binding = binding,
                    .data = chunk_,
                    .evaluation = true,
                    .number = number,
                    .scorer = &scorer,
                    .limit = limit};
    for (const Sequence::Entry& entry : evaluation_.entries) {
      MEDLEY_RETURN_IF_ERROR(
          Execute(programs_.evaluation.instructions[static_cast<size_t>(entry.instruction)], running));
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
    const int samples =
        ReducedSamples(programs_.training, BindingOf(count), block, training_.seats[SeatOf(block)].replica, count);
    work.blocks.push_back({&ComputeOf(block), SeatOf(block), samples});
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

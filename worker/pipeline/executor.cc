#include "worker/pipeline/executor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/program/samples.h"
#include "common/program/text.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/prefetcher.h"
#include "worker/pipeline/reduction_thread.h"
#include "worker/pipeline/sequence.h"

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
        share_{training_.layout, training_.replica, seed},
        evaluator_(programs.training, share_, *parts_.data, Tables()),
        prefetcher_(BatchAssembler(programs.training, share_, *parts_.data, Tables()), parts_.sparse) {
    const auto reductions = std::ranges::count_if(training_.instructions, [&](int i) {
      return programs_.training.instructions[static_cast<size_t>(i)].kind == Kind::kAllReduce;
    });
    if (reductions > 1) reductions_.emplace(*parts_.reducer);
    inputs_.resize(programs.training.values.size() * static_cast<size_t>(programs.training.micro_batches));
    outputs_.resize(programs.training.blocks.size() * static_cast<size_t>(programs.training.micro_batches));
    gradients_.resize(inputs_.size());
  }

  absl::StatusOr<StepResult> RunStep(const StepLease& lease, const WaitLimit& limit);
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options);
  Prefetcher& prefetcher() { return prefetcher_; }

 private:
  // A step, or a chunk of test data, on its way through the instructions.
  struct Running {
    const Program& program;
    const Binding& binding;
    const PreparedStep& data;
    bool evaluation = false;
    int64_t number = 0;        // of the step or chunk
    Scorer* scorer = nullptr;  // evaluation
    const WaitLimit& limit;
  };

  // Runs `work` and adds its duration to the step's communication time.
  template <typename Work>
  auto Timed(const Work& work) {
    const base::SteadyTime start = parts_.clock->Steady();
    auto result = work();
    comm_ += parts_.clock->Steady() - start;
    return result;
  }

  const Block& BlockOf(const Instruction& instruction) const {
    return programs_.training.blocks[static_cast<size_t>(instruction.block)];
  }
  BlockCompute& ComputeOf(int block) const { return *parts_.blocks[static_cast<size_t>(block)]; }
  // The table operations of this device, in the order of its blocks.
  std::vector<ParameterSpec> Tables() const {
    std::vector<ParameterSpec> tables;
    for (const int block : training_.blocks) {
      const std::vector<ParameterSpec>& own = ComputeOf(block).Tables();
      tables.insert(tables.end(), own.begin(), own.end());
    }
    return tables;
  }
  size_t Slot(int value, int micro) const {
    return static_cast<size_t>(value) * static_cast<size_t>(programs_.training.micro_batches) +
           static_cast<size_t>(micro);
  }

  absl::Status Execute(const Instruction& instruction, Running& running);
  absl::Status Move(const Instruction& instruction, Running& running);
  absl::Status Forward(const Instruction& instruction, Running& running);
  absl::Status Backward(const Instruction& instruction, Running& running);
  absl::Status Push(const Instruction& instruction, Running& running);
  absl::Status Reduce(const Instruction& instruction, Running& running);
  absl::Status Update(const Instruction& instruction, Running& running);
  std::span<const float> InputOf(const Block& block, int micro) const;
  void BeginStep(const PreparedStep& data);
  absl::Status EndStep(int64_t step);
  const Binding& BindingOf(int count);

  const Programs& programs_;
  const int device_;
  const Sequence training_, evaluation_;
  const ExecutorParts parts_;
  const Optimizer optimizer_;
  const BatchShare share_;
  base::nanoseconds comm_{0};
  std::vector<std::unique_ptr<Binding>> bindings_;  // of the full and the last batch
  std::vector<std::vector<float>> inputs_;          // received values, by Slot
  std::vector<std::vector<float>> gradients_;       // received gradients of values, by Slot
  std::vector<std::span<const float>> outputs_;     // of blocks here, by (block, micro-batch); valid until the next
  std::vector<std::span<const float>> back_;        // gradients of the inputs of blocks here, by block
  PreparedStep chunk_;
  BatchAssembler evaluator_;
  Prefetcher prefetcher_;
  std::optional<ReductionThread> reductions_;  // last: its thread uses the others
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
    case Kind::kPushRows:
      return Push(instruction, running);
    case Kind::kAllReduce:
      return Reduce(instruction, running);
    case Kind::kUpdate:
      return Update(instruction, running);
    default:
      return base::Internal("{} has no place in the sequence of a device",
                            program::Text(running.program, instruction, {}));
  }
}

// Sends the peer's samples of a value or gradient, or receives the peer's samples into their place. Nothing is sent for
// an empty range, as both sides know.
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
    std::vector<float>& into = (flow.gradient ? gradients_ : inputs_)[Slot(flow.value, instruction.micro)];
    into.resize(static_cast<size_t>(mine.count) * width);
    if (size == 0) return absl::OkStatus();
    return Timed(
        [&] { return parts_.channel->Recv(tag, instruction.peer, std::span(into).subspan(at, size), running.limit); });
  }
  if (size == 0) return absl::OkStatus();
  std::span<const float> from;
  if (flow.gradient) {
    for (const int consumer : value.consumers) {
      if (parts_.blocks[static_cast<size_t>(consumer)] != nullptr) from = back_[static_cast<size_t>(consumer)];
    }
  } else {
    from = outputs_[Slot(value.block, instruction.micro)];
  }
  return Timed([&] { return parts_.channel->Send(tag, instruction.peer, from.subspan(at, size), running.limit); });
}

std::span<const float> Executor::Rep::InputOf(const Block& block, int micro) const {
  if (block.inputs.empty()) return {};
  const int value = block.inputs.front();
  const int producer = programs_.training.values[static_cast<size_t>(value)].block;
  if (parts_.blocks[static_cast<size_t>(producer)] != nullptr) return outputs_[Slot(producer, micro)];
  return inputs_[Slot(value, micro)];
}

absl::Status Executor::Rep::Forward(const Instruction& instruction, Running& running) {
  const int micro = instruction.micro;
  const SampleRange mine = running.data.micros[static_cast<size_t>(micro)];
  const BatchView features = running.data.batch.View(mine.first, mine.count);
  const std::span<const float> input = InputOf(BlockOf(instruction), micro);
  std::span<const float>& output = outputs_[Slot(instruction.block, micro)];
  BlockCompute& compute = ComputeOf(instruction.block);
  if (!running.evaluation) {
    MEDLEY_ASSIGN_OR_RETURN(output, compute.Forward(micro, features, input));
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(output, compute.Infer(features, input));
  if (compute.IsLast()) running.scorer->Add(output, features.labels);
  return absl::OkStatus();
}

absl::Status Executor::Rep::Backward(const Instruction& instruction, Running&) {
  const Block& block = BlockOf(instruction);
  std::span<const float> gradient;
  if (!block.outputs.empty()) {
    const int value = block.outputs.front();
    const program::Value& output = programs_.training.values[static_cast<size_t>(value)];
    const int consumer = output.consumers.front();
    gradient = parts_.blocks[static_cast<size_t>(consumer)] != nullptr
                   ? back_[static_cast<size_t>(consumer)]
                   : std::span<const float>(gradients_[Slot(value, instruction.micro)]);
  }
  MEDLEY_ASSIGN_OR_RETURN(back_[static_cast<size_t>(instruction.block)],
                          ComputeOf(instruction.block).Backward(instruction.micro, gradient));
  return absl::OkStatus();
}

absl::Status Executor::Rep::Push(const Instruction& instruction, Running& running) {
  std::vector<TableKeys> tables;
  std::vector<std::span<const float>> gradients;
  const BlockCompute& compute = ComputeOf(instruction.block);
  for (size_t t = 0; t < compute.Tables().size(); ++t) {
    if (compute.Tables()[t].operation != instruction.table) continue;
    const auto keys = std::ranges::find(running.data.tables, instruction.table, &TableKeys::operation);
    tables.push_back(*keys);
    gradients.push_back(compute.RowGradients(static_cast<int>(t)));
  }
  return Timed(
      [&] { return parts_.sparse->Push(running.number, tables, gradients, running.data.lease.count, running.limit); });
}

absl::Status Executor::Rep::Reduce(const Instruction& instruction, Running& running) {
  const program::Group& group = running.program.groups[static_cast<size_t>(BlockOf(instruction).group)];
  const std::span<float> values = ComputeOf(instruction.block).Gradients();
  if (reductions_.has_value()) {
    reductions_->Start(running.number, instruction.block, group, values, running.limit);
    return absl::OkStatus();
  }
  return Timed([&] { return parts_.reducer->SumAll(running.number, instruction.block, group, values, running.limit); });
}

absl::Status Executor::Rep::Update(const Instruction& instruction, Running& running) {
  if (reductions_.has_value() && BlockOf(instruction).group >= 0) {
    MEDLEY_RETURN_IF_ERROR(Timed([&] { return reductions_->Wait(instruction.block); }));
  }
  return ComputeOf(instruction.block).ApplyUpdate(optimizer_.AtStep(running.number));
}

void Executor::Rep::BeginStep(const PreparedStep& data) {
  if (reductions_.has_value()) reductions_->Reset();
  back_.assign(programs_.training.blocks.size(), {});
  size_t table = 0;
  for (const int block : training_.blocks) {
    BlockCompute& compute = ComputeOf(block);
    compute.BeginStep({data.lease.step, programs_.training.micro_batches, data.lease.count});
    for (size_t t = 0; t < compute.Tables().size(); ++t) compute.SetRows(static_cast<int>(t), data.rows[table++]);
  }
}

// A block without dense parameters counts the step too.
absl::Status Executor::Rep::EndStep(int64_t step) {
  for (const int block : training_.blocks) {
    if (programs_.training.blocks[static_cast<size_t>(block)].dense) continue;
    MEDLEY_RETURN_IF_ERROR(ComputeOf(block).ApplyUpdate(optimizer_.AtStep(step)));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Executor::Rep::RunStep(const StepLease& lease, const WaitLimit& limit) {
  for (const int block : training_.blocks) {
    if (lease.step == ComputeOf(block).AppliedStep() + 1) continue;
    return base::FailedPrecondition("got the lease of step {}, but the parameters have applied step {}", lease.step,
                                    ComputeOf(block).AppliedStep());
  }
  comm_ = {};
  const base::SteadyTime start = parts_.clock->Steady();
  auto taken = Timed([&] { return prefetcher_.Take(lease, limit); });
  if (!taken.ok()) return taken.status();
  std::unique_ptr<PreparedStep> step = *std::move(taken);
  BeginStep(*step);
  Running running{programs_.training, BindingOf(lease.count), *step, false, lease.step, nullptr, limit};
  absl::Status status;
  for (const int i : training_.instructions) {
    status = Execute(programs_.training.instructions[static_cast<size_t>(i)], running);
    if (!status.ok()) break;
  }
  if (!status.ok()) {
    if (reductions_.has_value()) reductions_->Reset();  // they use the gradients
    return status;
  }
  MEDLEY_RETURN_IF_ERROR(EndStep(lease.step));
  prefetcher_.Recycle(std::move(step));

  StepResult result;
  result.step = lease.step;
  for (const int block : training_.blocks) {
    result.loss_sum += ComputeOf(block).LossSum();
    result.loss_samples += ComputeOf(block).LossSamples();
  }
  result.comm_seconds = base::ToSeconds(comm_);
  result.compute_seconds = base::ToSeconds(parts_.clock->Steady() - start) - result.comm_seconds;
  return result;
}

absl::StatusOr<ScoreSums> Executor::Rep::Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options) {
  if (!(test.shape() == parts_.data->shape()) || options.chunk <= 0) {
    return base::InvalidArgument(
        "the test data has {} fields and {} numeric columns per sample, the training data {} and {}",
        test.shape().fields, test.shape().numerics, parts_.data->shape().fields, parts_.data->shape().numerics);
  }
  Scorer scorer(options.scoring);
  const program::Layout& layout = programs_.training.layouts[static_cast<size_t>(training_.layout)];
  int64_t number = 0;
  for (int64_t first = 0; first < test.rows(); first += options.chunk, ++number) {
    if (options.stop.stop_requested()) return base::Cancelled("the evaluation at step {} was stopped", step);
    const int count = static_cast<int>(std::min<int64_t>(options.chunk, test.rows() - first));
    const WaitLimit limit{options.stop, parts_.clock->Steady() + options.chunk_timeout};
    const SampleRange mine = program::ShareOf(count, layout.cuts, training_.replica);
    evaluator_.AssembleRange(test, first + mine.first, mine.count, chunk_);
    if (!chunk_.tables.empty()) {
      MEDLEY_RETURN_IF_ERROR(parts_.sparse->Pull(step + 1, chunk_.tables, chunk_.rows, limit));
      size_t table = 0;
      for (const int block : training_.blocks) {
        for (size_t t = 0; t < ComputeOf(block).Tables().size(); ++t) {
          ComputeOf(block).SetRows(static_cast<int>(t), chunk_.rows[table++]);
        }
      }
    }
    const Binding binding(programs_.evaluation, count);
    Running running{programs_.evaluation, binding, chunk_, true, number, &scorer, limit};
    for (const int i : evaluation_.instructions) {
      MEDLEY_RETURN_IF_ERROR(Execute(programs_.evaluation.instructions[static_cast<size_t>(i)], running));
    }
    if (options.on_chunk) options.on_chunk();
  }
  const bool scores = std::ranges::any_of(training_.blocks, [&](int block) { return ComputeOf(block).IsLast(); });
  return scores ? scorer.scores() : ScoreSums();
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const Programs& programs, int device, ExecutorParts parts,
                                                           const Optimizer& optimizer, uint64_t seed) {
  MEDLEY_ASSIGN_OR_RETURN(Sequence training, SequenceOf(programs.training, device));
  MEDLEY_ASSIGN_OR_RETURN(Sequence evaluation, SequenceOf(programs.evaluation, device));
  return std::unique_ptr<Executor>(new Executor(std::make_unique<Rep>(
      programs, device, std::move(training), std::move(evaluation), std::move(parts), optimizer, seed)));
}

Executor::Executor(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Executor::~Executor() = default;
void Executor::Prefetch(const StepLease& lease) { rep_->prefetcher().Add(lease); }
absl::StatusOr<StepResult> Executor::RunStep(const StepLease& lease, const WaitLimit& limit) {
  return rep_->RunStep(lease, limit);
}
absl::StatusOr<ScoreSums> Executor::Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options) {
  return rep_->Evaluate(test, step, options);
}
void Executor::DropPrefetched() { rep_->prefetcher().Drop(); }

}  // namespace medley::worker

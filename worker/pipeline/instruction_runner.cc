#include "worker/pipeline/instruction_runner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/status.h"
#include "common/program/text.h"
#include "worker/pipeline/average.h"
#include "worker/pipeline/clip.h"
#include "worker/pipeline/shared_gradients.h"

namespace medley::worker {

using program::Block;
using program::Flow;
using program::Instruction;
using program::Kind;
using program::SampleRange;

InstructionRunner::InstructionRunner(const program::Program& program, int device, const Sequence& sequence,
                                     const std::vector<size_t>& seat_of, const ExecutorParts& parts,
                                     const Optimizer& optimizer)
    : program_(program),
      device_(device),
      sequence_(sequence),
      parts_(parts),
      optimizer_(optimizer),
      seat_of_(seat_of),
      values_(program, Interleaved(program, sequence), program.micro_batches * sequence.depth) {
  const auto reductions = std::ranges::count_if(sequence.blocks, [&](int b) { return BlockAt(b).group >= 0; });
  // With several seats, a peer may need what this device computes after its part of a reduction.
  if (reductions > 1 || (reductions > 0 && (sequence.seats.size() > 1 || sequence.depth > 1))) {
    reductions_.emplace(program, sequence.blocks, *parts.reducer);
  }
}

absl::Status InstructionRunner::AwaitReduction(int block) {
  if (!reductions_.has_value() || BlockAt(block).group < 0) return absl::OkStatus();
  return Timed([&] { return reductions_->Of(block).Wait(block); });
}

std::span<const float> InstructionRunner::Source(const Flow& flow, int micro) const {
  return flow.gradient ? values_.Gradient(flow.value, flow.from_layout, micro) : values_.Value(flow.value, micro);
}

absl::Status InstructionRunner::Execute(const Instruction& instruction, RunningStep& running) {
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
absl::Status InstructionRunner::Move(const Instruction& instruction, RunningStep& running) {
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

absl::Status InstructionRunner::Forward(const Instruction& instruction, RunningStep& running) {
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

absl::Status InstructionRunner::Backward(const Instruction& instruction, RunningStep& running) {
  const int block = instruction.block, micro = running.At(instruction.micro);
  MEDLEY_ASSIGN_OR_RETURN(const Values gradients, ComputeOf(block).Backward({running.slot, instruction.micro},
                                                                            values_.OutputGradientsOf(block, micro)));
  values_.SetInputGradients(block, micro, gradients);
  return absl::OkStatus();
}

// The gradients of all tables of this device are one push, with the last of its instructions: the owner of the rows
// counts one push of each trainer and step.
absl::Status InstructionRunner::Push(const Instruction&, RunningStep& running) {
  if (++*running.pushes < running.data.tables.size()) return absl::OkStatus();
  std::vector<std::span<const float>> gradients;
  for (const int block : sequence_.blocks) {
    const BlockCompute& compute = ComputeOf(block);
    for (size_t t = 0; t < compute.Tables().size(); ++t) {
      gradients.push_back(compute.RowGradients(running.slot, static_cast<int>(t)));
    }
  }
  return Timed([&] {
    return parts_.sparse->Push(running.number, running.data.tables, gradients, running.data.lease.count, running.limit);
  });
}

absl::Status InstructionRunner::Reduce(const Instruction& instruction, RunningStep& running) {
  const program::Group& group = running.program.groups[static_cast<size_t>(BlockOf(instruction).group)];
  const std::span<float> values = ComputeOf(instruction.block).Gradients();
  if (reductions_.has_value()) {
    reductions_->Of(instruction.block).Start(running.number, instruction.block, group, values, running.limit);
    return absl::OkStatus();
  }
  return Timed([&] { return parts_.reducer->SumAll(running.number, instruction.block, group, values, running.limit); });
}

absl::Status InstructionRunner::Update(const Instruction& instruction, RunningStep& running) {
  MEDLEY_RETURN_IF_ERROR(AwaitReduction(instruction.block));
  return ComputeOf(instruction.block).ApplyUpdate(optimizer_.AtStep(running.number));
}

// One collective at a time: those of the other thread come first.
absl::Status InstructionRunner::Share(const Instruction& instruction, RunningStep& running) {
  const program::Shared& shared = running.program.shared[static_cast<size_t>(instruction.gradient)];
  std::vector<SharedHolder> holders;
  for (const int block : sequence_.blocks) {
    if (BlockAt(block).dense) MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
    if (std::ranges::find(shared.blocks, block) == shared.blocks.end()) continue;
    holders.push_back({&ComputeOf(block), sequence_.seats[SeatOf(block)].replica == 0});
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
absl::Status InstructionRunner::Norm(RunningStep& running) {
  std::vector<BlockCompute*> dense;
  double squares = 0;
  for (const int block : sequence_.blocks) {
    if (!BlockAt(block).dense) continue;
    MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
    dense.push_back(&ComputeOf(block));
    if (sequence_.seats[SeatOf(block)].replica != 0) continue;
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
absl::Status InstructionRunner::Average(const Instruction& instruction, RunningStep& running) {
  if (!running.data.lease.agrees) return absl::OkStatus();
  for (const int block : sequence_.blocks) MEDLEY_RETURN_IF_ERROR(AwaitReduction(block));
  const Block& block = BlockOf(instruction);
  const program::Group& group = running.program.groups[static_cast<size_t>(block.average)];
  const int replicas = running.program.layouts[static_cast<size_t>(block.layout)].replicas(), of = instruction.block;
  return AverageReplicas(ComputeOf(of), replicas, optimizer_.kind, averaged_, [&](std::span<float> sum) {
    return Timed([&] { return parts_.reducer->SumAll(running.number, of, group, sum, running.limit); });
  });
}

}  // namespace medley::worker

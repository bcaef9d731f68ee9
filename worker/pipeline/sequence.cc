#include "worker/pipeline/sequence.h"

#include <algorithm>
#include <map>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using program::Instruction;
using program::Kind;
using program::Program;

absl::Status CheckRunnable(const Program& program, const Instruction& instruction) {
  const std::string& device = program.devices[static_cast<size_t>(instruction.device)].id;
  if (instruction.shift > 0) {
    return base::Unimplemented("plan.schedule.kind: this runtime executes only synchronous schedules, not ASYNC_1F1B");
  }
  if (instruction.kind == Kind::kSum) {
    return base::Unimplemented("{}: this runtime does not add gradients of several consumers", device);
  }
  if (instruction.kind == Kind::kAverage) {
    return base::Unimplemented("{}: this runtime synchronises all replicas in every step", device);
  }
  return absl::OkStatus();
}

absl::Status AddBlocks(const Program& program, int device, Sequence& sequence) {
  for (int b = 0; b < static_cast<int>(program.blocks.size()); ++b) {
    const program::Block& block = program.blocks[static_cast<size_t>(b)];
    const program::Layout& layout = program.layouts[static_cast<size_t>(block.layout)];
    const auto found = std::find(layout.devices.begin(), layout.devices.end(), device);
    if (found == layout.devices.end()) continue;
    const std::string& name = program.devices[static_cast<size_t>(device)].id;
    if (sequence.layout >= 0 && sequence.layout != block.layout) {
      return base::Unimplemented("{}: this runtime executes blocks of one layout on a device", name);
    }
    if (block.inputs.size() > 1 || block.outputs.size() > 1) {
      return base::Unimplemented("{}: this runtime executes blocks with one input and one output", name);
    }
    sequence.layout = block.layout;
    sequence.replica = static_cast<int>(found - layout.devices.begin());
    sequence.blocks.push_back(b);
  }
  if (sequence.blocks.empty()) return base::InvalidArgument("device {} has nothing to compute", device);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Sequence> SequenceOf(const Program& program, int device) {
  Sequence sequence;
  if (device < 0 || device >= static_cast<int>(program.devices.size())) {
    return base::InvalidArgument("device {} does not exist, the program has {}", device, program.devices.size());
  }
  MEDLEY_RETURN_IF_ERROR(AddBlocks(program, device, sequence));
  std::vector<int> compute;
  std::map<int, size_t> position;  // of the instructions of the compute list
  for (const program::List& list : program.lists) {
    if (list.device != device || list.kind != program::ListKind::kCompute) continue;
    compute = list.instructions;
  }
  for (size_t i = 0; i < compute.size(); ++i) position[compute[i]] = i;

  std::vector<std::vector<int>> after(compute.size());
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& instruction = program.instructions[static_cast<size_t>(i)];
    if (instruction.device != device) continue;
    MEDLEY_RETURN_IF_ERROR(CheckRunnable(program, instruction));
    const bool follows =
        instruction.kind == Kind::kSend || instruction.kind == Kind::kPushRows || instruction.kind == Kind::kAllReduce;
    if (!follows) continue;
    size_t last = 0;
    for (const program::Dependency& dependency : program.DependenciesOf(instruction)) {
      const auto found = position.find(dependency.instruction);
      if (dependency.steps_back == 0 && found != position.end()) last = std::max(last, found->second);
    }
    after[last].push_back(i);
  }
  std::vector<bool> received(program.instructions.size(), false);
  for (size_t i = 0; i < compute.size(); ++i) {
    for (const program::Dependency& dependency :
         program.DependenciesOf(program.instructions[static_cast<size_t>(compute[i])])) {
      const auto needed = static_cast<size_t>(dependency.instruction);
      if (program.instructions[needed].kind != Kind::kReceive || dependency.steps_back > 0) continue;
      if (position.contains(dependency.instruction) || received[needed]) continue;
      received[needed] = true;
      sequence.instructions.push_back(dependency.instruction);
    }
    sequence.instructions.push_back(compute[i]);
    sequence.instructions.insert(sequence.instructions.end(), after[i].begin(), after[i].end());
  }
  return sequence;
}

}  // namespace medley::worker

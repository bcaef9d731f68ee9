#include "worker/pipeline/sequence.h"

#include <algorithm>
#include <array>
#include <map>

#include "common/base/status.h"

namespace medley::worker {
namespace {

using program::Instruction;
using program::Kind;
using program::Program;

absl::Status AddBlocks(const Program& program, int device, Sequence& sequence) {
  std::vector<Sequence::Seat> seats;  // of each block
  for (int b = 0; b < static_cast<int>(program.blocks.size()); ++b) {
    const program::Block& block = program.blocks[static_cast<size_t>(b)];
    const program::Layout& layout = program.layouts[static_cast<size_t>(block.layout)];
    const auto found = std::find(layout.devices.begin(), layout.devices.end(), device);
    if (found == layout.devices.end()) continue;
    if (!sequence.blocks.empty() && sequence.lag != block.lag) {
      return base::Unimplemented("{}: this runtime executes blocks of one stage on a device",
                                 program.devices[static_cast<size_t>(device)].id);
    }
    sequence.lag = block.lag;
    sequence.blocks.push_back(b);
    seats.push_back({block.layout, static_cast<int>(found - layout.devices.begin())});
  }
  if (sequence.blocks.empty()) return base::InvalidArgument("device {} has nothing to compute", device);
  sequence.seats = seats;
  std::ranges::sort(sequence.seats, {}, &Sequence::Seat::layout);
  sequence.seats.erase(std::ranges::unique(sequence.seats).begin(), sequence.seats.end());
  for (const Sequence::Seat& seat : seats) {
    sequence.seat_of.push_back(static_cast<size_t>(std::ranges::find(sequence.seats, seat) - sequence.seats.begin()));
  }
  return absl::OkStatus();
}

// The messages that each instruction of the compute list is the first of its step to need.
std::vector<std::vector<int>> Receives(const Program& program, const std::vector<int>& compute,
                                       const std::map<int, size_t>& position) {
  std::map<int, std::pair<int, size_t>> first;  // by message: shift and position of the first that needs it
  std::vector<std::vector<int>> before(compute.size());
  for (size_t i = 0; i < compute.size(); ++i) {
    const Instruction& instruction = program.instructions[static_cast<size_t>(compute[i])];
    for (const program::Dependency& dependency : program.DependenciesOf(instruction)) {
      const int needed = dependency.instruction;
      if (program.instructions[static_cast<size_t>(needed)].kind != Kind::kReceive || dependency.steps_back > 0)
        continue;
      if (position.contains(needed)) continue;
      const std::pair<int, size_t> here{instruction.shift, i};
      const auto [found, inserted] = first.try_emplace(needed, here);
      if (!inserted && found->second <= here) continue;
      if (!inserted) std::erase(before[found->second.second], needed);
      found->second = here;
      before[i].push_back(needed);
    }
  }
  return before;
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
  size_t reduced = 0;  // the position after which the last reduction starts
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& instruction = program.instructions[static_cast<size_t>(i)];
    if (instruction.device != device || position.contains(i)) continue;
    constexpr std::array kFollow = {Kind::kSend,  Kind::kPushRows, Kind::kAllReduce,
                                    Kind::kShare, Kind::kNorm,     Kind::kAverage};
    if (std::ranges::find(kFollow, instruction.kind) == kFollow.end()) continue;
    size_t last = 0;
    for (const program::Dependency& dependency : program.DependenciesOf(instruction)) {
      const auto found = position.find(dependency.instruction);
      if (dependency.steps_back == 0 && found != position.end()) last = std::max(last, found->second);
    }
    if (instruction.kind == Kind::kAllReduce || instruction.kind == Kind::kShare || instruction.kind == Kind::kNorm)
      last = reduced = std::max(last, reduced);
    after[last].push_back(i);
  }
  const std::vector<std::vector<int>> before = Receives(program, compute, position);
  const auto add = [&](int instruction, int shift) {
    sequence.entries.push_back({instruction, shift});
    sequence.depth = std::max(sequence.depth, shift + 1);
  };
  for (size_t i = 0; i < compute.size(); ++i) {
    const int shift = program.instructions[static_cast<size_t>(compute[i])].shift;
    for (const int receive : before[i]) add(receive, shift);
    add(compute[i], shift);
    for (const int follower : after[i]) add(follower, program.instructions[static_cast<size_t>(follower)].shift);
  }
  return sequence;
}

std::vector<size_t> SeatsOf(const Program& program, const Sequence& sequence) {
  std::vector<size_t> seats(program.blocks.size());
  for (size_t b = 0; b < sequence.blocks.size(); ++b) {
    seats[static_cast<size_t>(sequence.blocks[b])] = sequence.seat_of[b];
  }
  return seats;
}

bool Interleaved(const Program& program, const Sequence& sequence) {
  const auto segment = [&](int block) { return program.blocks[static_cast<size_t>(block)].segment; };
  return program.form == program::Form::kOrdered || segment(sequence.blocks.front()) != segment(sequence.blocks.back());
}

}  // namespace medley::worker

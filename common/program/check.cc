#include "common/program/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/program/text.h"

namespace medley::program {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program) {}

  absl::Status Run() {
    MEDLEY_RETURN_IF_ERROR(CheckChannels());
    MEDLEY_RETURN_IF_ERROR(CheckMicroBatches());
    MEDLEY_RETURN_IF_ERROR(CheckUpdates());
    return CheckOrder();
  }

 private:
  const Instruction& At(int i) const { return program_.instructions[static_cast<size_t>(i)]; }
  std::string Name(int i) const {
    return fmt::format("{} on {}", Text(program_, At(i), {}), program_.devices[static_cast<size_t>(At(i).device)].id);
  }

  absl::Status CheckChannels() const {
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& one = At(i);
      if (one.kind != Kind::kSend && one.kind != Kind::kReceive) continue;
      if (one.kind == Kind::kReceive && one.peer == one.device) continue;
      const int other = one.match;
      if (other < 0 || At(other).match != i || At(other).kind == one.kind || At(other).flow != one.flow ||
          At(other).micro != one.micro || At(other).device != one.peer || At(other).shift != one.shift) {
        return base::Internal("program: {} has no counterpart", Name(i));
      }
    }
    return CheckMessages();
  }

  // Messages arrive in the order sent, so both ends of a channel have the same order.
  absl::Status CheckMessages() const {
    std::map<std::pair<int, int>, const List*> receives;  // (from, to)
    for (const List& list : program_.lists) {
      if (list.kind == ListKind::kReceive) receives[{list.peer, list.device}] = &list;
    }
    for (const List& list : program_.lists) {
      if (list.kind != ListKind::kSend) continue;
      const auto other = receives.find({list.device, list.peer});
      for (size_t k = 0; k < list.instructions.size(); ++k) {
        if (other != receives.end() && k < other->second->instructions.size() &&
            other->second->instructions[k] == At(list.instructions[k]).match) {
          continue;
        }
        return base::Internal("program: {} is not received in its turn", Name(list.instructions[k]));
      }
    }
    return absl::OkStatus();
  }

  // A replica's passes of a block follow each other: what needs all gradients needs the last one.
  absl::Status CheckMicroBatches() const {
    std::map<std::tuple<Kind, int, int>, int> next;  // (kind, block, replica)
    for (const List& list : program_.lists) {
      if (list.kind != ListKind::kCompute) continue;
      for (const int i : list.instructions) {
        if (At(i).kind != Kind::kForward && At(i).kind != Kind::kBackward) continue;
        const int micro = At(i).micro - At(i).shift * program_.micro_batches;  // from the iteration's own step on
        const auto [expected, inserted] = next.try_emplace({At(i).kind, At(i).block, At(i).replica}, micro);
        if (expected->second++ != micro) return base::Internal("program: {} is not in its turn", Name(i));
      }
    }
    return absl::OkStatus();
  }

  // Those of the same step, block and replica that an update needs.
  int ReductionsBefore(const Instruction& update) const {
    return static_cast<int>(std::ranges::count_if(program_.DependenciesOf(update), [&](const Dependency& dependency) {
      const Instruction& needed = At(dependency.instruction);
      return needed.kind == Kind::kAllReduce && dependency.steps_back == 0 && needed.block == update.block &&
             needed.replica == update.replica;
    }));
  }

  // An update of a block waits for the sums of all parameters that it shares.
  absl::Status CheckShared(int update) const {
    const Instruction& instruction = At(update);
    for (int s = 0; s < static_cast<int>(program_.shared.size()); ++s) {
      const Shared& shared = program_.shared[static_cast<size_t>(s)];
      if (std::ranges::find(shared.blocks, instruction.block) == shared.blocks.end()) continue;
      const auto is_sum = [&](const Dependency& dependency) {
        const Instruction& needed = At(dependency.instruction);
        return needed.kind == Kind::kShare && needed.gradient == s && needed.device == instruction.device &&
               dependency.steps_back == 0;
      };
      if (std::ranges::count_if(program_.DependenciesOf(instruction), is_sum) == 1) continue;
      return base::Internal("program: {} does not follow the sum of the shared parameter '{}'", Name(update),
                            shared.name);
    }
    return absl::OkStatus();
  }

  absl::Status CheckUpdates() const {
    if (!program_.Trains()) return absl::OkStatus();
    std::map<std::pair<int, int>, int> updated;  // (block, replica) -> how often
    std::set<int> normed;                        // devices
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& instruction = At(i);
      const std::pair key(instruction.block, instruction.replica);
      if (instruction.kind == Kind::kNorm) normed.insert(instruction.device);
      if (instruction.kind != Kind::kUpdate) continue;
      if (++updated[key] > 1) return base::Internal("program: {} appears twice", Name(i));
      const int reductions = ReductionsBefore(instruction);
      if (reductions != (program_.blocks[static_cast<size_t>(instruction.block)].group >= 0 ? 1 : 0)) {
        return base::Internal("program: {} follows {} reductions", Name(i), reductions);
      }
      MEDLEY_RETURN_IF_ERROR(CheckShared(i));
      if (program_.clips && !normed.contains(instruction.device)) {
        return base::Internal("program: {} does not follow the norm of the gradients", Name(i));
      }
    }
    for (int b = 0; b < static_cast<int>(program_.blocks.size()); ++b) {
      const Block& block = program_.blocks[static_cast<size_t>(b)];
      const Layout& layout = program_.layouts[static_cast<size_t>(block.layout)];
      for (int r = 0; block.dense && r < layout.replicas(); ++r) {
        if (updated.contains({b, r})) continue;
        return base::Internal("program: nothing updates {} on {}", BlockName(program_, b, {}),
                              program_.devices[static_cast<size_t>(layout.devices[static_cast<size_t>(r)])].id);
      }
    }
    return absl::OkStatus();
  }

  // A collective ends on all replicas or on none, so its instructions are one node.
  int Node(int i) {
    const Instruction& instruction = At(i);
    if (instruction.kind == Kind::kShare) {
      return joint_.try_emplace({instruction.kind, instruction.gradient}, i).first->second;
    }
    if (instruction.kind == Kind::kNorm) return joint_.try_emplace({instruction.kind, 0}, i).first->second;
    if (instruction.kind != Kind::kAllReduce && instruction.kind != Kind::kAverage) return i;
    return joint_.try_emplace({instruction.kind, instruction.block}, i).first->second;
  }

  // Iterations of different lists are independent, but nothing may need an instruction of a later iteration, and within
  // one iteration nothing may wait in a circle: then the first iteration ends, hence the second, and so on.
  absl::Status CheckOrder() {
    const size_t size = program_.instructions.size();
    std::vector<std::vector<int>> next(size);
    std::vector<int> missing(size, 0);
    const auto edge = [&](int from, int to) {
      from = Node(from);
      to = Node(to);
      if (from == to) return;
      next[static_cast<size_t>(from)].push_back(to);
      ++missing[static_cast<size_t>(to)];
    };
    for (int i = 0; i < static_cast<int>(size); ++i) {
      for (const Dependency& dependency : program_.DependenciesOf(At(i))) {
        const int later = dependency.steps_back + At(i).shift - At(dependency.instruction).shift;
        if (later < 0) {
          return base::Internal("program: {} waits for {}, which its list starts later", Name(i),
                                Name(dependency.instruction));
        }
        if (later == 0) edge(dependency.instruction, i);
      }
    }
    for (const List& list : program_.lists) {
      for (size_t i = 1; i < list.instructions.size(); ++i) edge(list.instructions[i - 1], list.instructions[i]);
    }
    std::vector<int> ready;
    for (int i = 0; i < static_cast<int>(size); ++i) {
      if (missing[static_cast<size_t>(i)] == 0) ready.push_back(i);  // also the other instructions of a collective
    }
    size_t done = 0;
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      ++done;
      for (const int to : next[static_cast<size_t>(i)]) {
        if (--missing[static_cast<size_t>(to)] == 0) ready.push_back(to);
      }
    }
    if (done == size) return absl::OkStatus();
    for (int i = 0; i < static_cast<int>(size); ++i) {
      if (missing[static_cast<size_t>(i)] > 0)
        return base::Internal("program: {} waits for itself in a circle", Name(i));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  std::map<std::pair<Kind, int>, int> joint_;  // (kind, block) -> the node
};

}  // namespace

absl::Status Check(const Program& program) { return Checker(program).Run(); }

}  // namespace medley::program

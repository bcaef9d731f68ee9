#include "scheduler-service/simulate/reduction_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace medley::sched {
namespace {

using program::Instruction;
using program::Kind;

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Reduction {
  int operation = 0;  // the first of the block
  double first_use = kNever;
  double ready = 0;  // when the gradients of all replicas are complete
  double seconds = kNever;
  std::vector<std::pair<int, int>> lists;  // device, and the device that serves
};

// By block: those that one step of the timeline has as a whole.
std::map<int, Reduction> ReductionsOf(const PlanSimulation& simulated) {
  const program::Program& program = simulated.program;
  std::map<int, int64_t> spans;  // by step
  for (const Span& span : simulated.simulation.spans) ++spans[span.step];
  std::map<int, Reduction> reductions;
  if (spans.empty()) return reductions;
  const int step = std::ranges::max_element(spans, {}, [](const auto& entry) { return entry.second; })->first;
  std::map<int, Reduction> all;
  for (const Span& span : simulated.simulation.spans) {
    const Instruction& one = program.instructions[static_cast<size_t>(span.instruction)];
    if (span.step != step || one.block < 0) continue;
    Reduction& reduction = all[one.block];
    if (one.kind == Kind::kForward) reduction.first_use = std::min(reduction.first_use, span.start);
    if (one.kind == Kind::kBackward) reduction.ready = std::max(reduction.ready, span.end);
    if (one.kind != Kind::kAllReduce) continue;
    reduction.seconds = std::min(reduction.seconds, span.end - span.start);  // the last replica waits for no other
    reduction.lists.emplace_back(one.device, program.ServerOf(one.block));
  }
  for (auto& [block, reduction] : all) {
    if (reduction.lists.empty()) continue;
    reduction.operation = program.blocks[static_cast<size_t>(block)].operations.first;
    reductions.emplace(block, std::move(reduction));
  }
  return reductions;
}

}  // namespace

std::vector<model::OrderEntry> ReductionsByFirstUse(const PlanSimulation& simulated) {
  std::map<int, Reduction> left = ReductionsOf(simulated);
  std::map<std::pair<int, int>, double> free;  // by list: when it is
  const auto start = [&](const Reduction& reduction) {
    double at = reduction.ready;
    for (const auto& list : reduction.lists) at = std::max(at, free[list]);
    return at;
  };
  std::vector<model::OrderEntry> order;
  while (!left.empty()) {
    auto next = left.end();
    std::pair<double, double> least{kNever, kNever};  // start, first use
    for (auto it = left.begin(); it != left.end(); ++it) {
      const std::pair key(start(it->second), it->second.first_use);
      if (next != left.end() && key >= least) continue;
      least = key;
      next = it;
    }
    for (const auto& list : next->second.lists) free[list] = least.first + next->second.seconds;
    order.push_back({next->second.operation, model::Phase::kReduce});
    left.erase(next);
  }
  return order;
}

}  // namespace medley::sched

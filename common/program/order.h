// The order in which blocks start their passes, over all devices: what a schedule is. One file a generator. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "common/model/forward.h"
#include "common/program/lower.h"
#include "common/program/program.h"

namespace medley::program {

// A pass of a block over one micro-batch, by all replicas, for step iteration - shift.
struct Action {
  bool backward = false;
  int block = 0;
  int micro = 0;
  int shift = 0;
  bool operator==(const Action&) const = default;
};

// The plan as blocks.
struct Shape {
  const Lowered* plan = nullptr;
  const std::vector<Block>* blocks = nullptr;
  int micro_batches = 1;
};

// When a block is updated.
enum class Updates : uint8_t {
  kAtEnd,     // after all passes of the step
  kAtOnce,    // as soon as its last backward pass has ended, and its reduction
  kNextStep,  // before its first pass of the next step, so that reductions go on until then
};

struct Order {
  std::vector<Action> actions;  // of one iteration; each follows what it needs of the same iteration
  std::vector<int> lag;         // by block: Block::lag
  std::vector<int> reductions;  // blocks, in the order of their reductions; empty: as the backward pass ends them
  Updates updates = Updates::kAtEnd;
};

// One-forward-one-backward with one update a step: a segment of depth i runs S - i - 1 micro-batches ahead of its
// backward pass (PipeDream-Flush; HeterPS's pipeline).
Order Sync1F1B(const Shape& shape);
// All forward passes, then all backward passes (GPipe).
Order GPipe(const Shape& shape);
// One-forward-one-backward without drain and with weight stashing (PipeDream): a segment of depth i computes with the
// parameters of min(1 + ceil((S - i - 1) / M), max_staleness + 1) steps before.
Order Async1F1B(const Shape& shape, int max_staleness);
// As the planner's `order` says (HeteroG); micro-batch after micro-batch.
Order Ordered(const Shape& shape, const std::vector<model::OrderEntry>& order);
// Order::reductions of the entries kReduce: the blocks that they name in this order, then the others; empty without
// such entries.
std::vector<int> ReductionOrder(const Shape& shape, const std::vector<model::OrderEntry>& order);
// The forward pass of one batch.
Order Evaluate(const Shape& shape);

}  // namespace medley::program

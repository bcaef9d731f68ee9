// An entry of the order in which an execution plan computes. Immutable value.
#pragma once

namespace medley::model {

// An entry of ExecutionPlan::order.
enum class Phase { kForward, kBackward, kReduce };

struct OrderEntry {
  int operation = 0;
  Phase phase = Phase::kForward;
  bool operator==(const OrderEntry&) const = default;
};

}  // namespace medley::model

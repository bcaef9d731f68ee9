#include <algorithm>

#include "common/program/order.h"
#include "common/program/pipeline_order.h"

namespace medley::program {

Order Async1F1B(const Shape& shape, int max_staleness) {
  const int depth = shape.plan->depth, micros = shape.micro_batches;
  const auto lag = [&](int i) {
    const int wanted = 1 + (depth - i - 1 + micros - 1) / micros;
    return max_staleness > 0 ? std::min(wanted, max_staleness + 1) : wanted;
  };
  // A step needs the update of `lag` steps before, so no segment is more than lag - 1 whole steps ahead.
  const auto ahead = [&](int i) { return std::min(depth - i - 1, (lag(i) - 1) * micros); };
  Order order;
  order.actions = PipelineOrder(shape, ahead, true);
  for (const Block& block : *shape.blocks) {
    order.lag.push_back(lag(shape.plan->segments[static_cast<size_t>(block.segment)].depth));
  }
  order.updates = Updates::kAtOnce;
  return order;
}

}  // namespace medley::program

#include "common/program/order.h"
#include "common/program/pipeline_order.h"

namespace medley::program {

Order Sync1F1B(const Shape& shape) {
  const int depth = shape.plan->depth;
  Order order;
  order.actions = PipelineOrder(
      shape, [depth](int i) { return depth - i - 1; }, false);
  order.lag.assign(shape.blocks->size(), 1);
  return order;
}

}  // namespace medley::program

#include "common/program/order.h"
#include "common/program/pipeline_order.h"

namespace medley::program {

Order GPipe(const Shape& shape) {
  Order order;
  order.actions = PipelineOrder(
      shape, [&shape](int) { return shape.micro_batches; }, false);
  order.lag.assign(shape.blocks->size(), 1);
  return order;
}

}  // namespace medley::program

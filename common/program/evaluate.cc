#include "common/program/order.h"

namespace medley::program {

Order Evaluate(const Shape& shape) {
  Order order;
  for (size_t b = 0; b < shape.blocks->size(); ++b) order.actions.push_back({false, static_cast<int>(b), 0, 0});
  order.lag.assign(shape.blocks->size(), 0);
  return order;
}

}  // namespace medley::program

#include "worker/model/gradient_sums.h"

#include <utility>

#include "worker/model/kernels.h"

namespace medley::worker {

void GradientSums::Begin(size_t values) {
  for (const Gradient& gradient : values_) Free(gradient);
  values_.assign(values, {});
}

Gradient GradientSums::New(size_t floats) {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(buffers_.size()));
    buffers_.emplace_back();
  }
  const int buffer = free_.back();
  free_.pop_back();
  AlignedFloats& memory = buffers_[static_cast<size_t>(buffer)];
  memory.Grow(floats);
  return {memory.data(), buffer};
}

void GradientSums::Free(const Gradient& gradient) {
  if (gradient.buffer >= 0) free_.push_back(gradient.buffer);
}

void GradientSums::Give(size_t value, const Gradient& gradient, size_t floats) {
  Gradient& sum = values_[value];
  if (sum.data == nullptr) {
    sum = gradient;
    return;
  }
  const Gradient was = sum;
  if (was.buffer < 0) sum = gradient.buffer >= 0 ? gradient : New(floats);
  Add({was.data, floats}, {gradient.data, floats}, {Memory(sum), floats});
  if (was.buffer >= 0) Free(gradient);
}

Gradient GradientSums::Take(size_t value) { return std::exchange(values_[value], {}); }

}  // namespace medley::worker

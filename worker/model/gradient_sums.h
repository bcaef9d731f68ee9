// The gradients of values on their way back through a block. What several operations give for one value is added.
//
// Keeps its buffers from step to step: a chain uses two. Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "worker/model/aligned_floats.h"

namespace medley::worker {

// A gradient in a buffer of GradientSums, or in other memory (buffer < 0), which is only read.
struct Gradient {
  const float* data = nullptr;
  int buffer = -1;
};

class GradientSums {
 public:
  // Forgets all gradients, for a backward pass over this many values.
  void Begin(size_t values);
  // A buffer of at least `floats`, with any content. It belongs to the caller, who gives or frees it.
  Gradient New(size_t floats);
  // The writable memory of a gradient that has a buffer.
  float* Memory(const Gradient& gradient) { return buffers_[static_cast<size_t>(gradient.buffer)].data(); }
  void Free(const Gradient& gradient);
  // Adds a gradient of `floats` to that of a value. Its buffer belongs to this object then.
  void Give(size_t value, const Gradient& gradient, size_t floats);
  // Takes the gradient of a value, with its buffer.
  Gradient Take(size_t value);
  // The gradient of a value, valid until Begin.
  const float* At(size_t value) const { return values_[value].data; }

 private:
  std::vector<Gradient> values_;
  std::deque<AlignedFloats> buffers_;
  std::vector<int> free_;
};

}  // namespace medley::worker

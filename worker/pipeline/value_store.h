// The values that pass between blocks on one device, and their gradients, for each micro-batch of the open steps.
//
// Values of blocks on this device are not copied: they stay in the block's memory until the block computes the same
// micro-batch again. What comes from other devices has a buffer here for each flow. Not thread-safe.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "common/program/program.h"
#include "worker/pipeline/block_compute.h"

namespace medley::worker {

class ValueStore {
 public:
  // `program` trains and must outlive this object. `interleaved`: other passes may come between the one that computes a
  // gradient and the one that uses it. Everywhere below, `micro` counts the `micros` micro-batches that are open at
  // once.
  ValueStore(const program::Program& program, bool interleaved, int micros);

  // Where the message of a flow is received.
  std::vector<float>& Received(int flow, int micro) { return received_[Slot(flow, micro)]; }
  // A value of a block on this device.
  std::span<const float> Value(int value, int micro) const { return outputs_[Slot(value, micro)]; }
  // The gradient of a value, summed over its consumers in a layout and, where the value was computed, over all.
  std::span<const float> Gradient(int value, int layout, int micro) const;

  void SetOutputs(int block, int micro, Values outputs);
  void SetInputGradients(int block, int micro, Values gradients);
  // What a block takes. Valid until the next call of either.
  Values InputsOf(int block, int micro);
  Values OutputGradientsOf(int block, int micro);
  // Adds the parts of a gradient in the program's order, so that the result does not depend on when they came.
  void Sum(int gradient, int micro);

 private:
  // The place of a value, flow or gradient for a micro-batch.
  size_t Slot(int index, int micro) const { return static_cast<size_t>(index) * micros_ + static_cast<size_t>(micro); }
  int LayoutOf(int block) const { return program_.blocks[static_cast<size_t>(block)].layout; }

  const program::Program& program_;
  const bool interleaved_;
  const size_t micros_;
  std::vector<std::span<const float>> outputs_;                       // of blocks here, by Slot
  std::vector<std::vector<float>> received_;                          // by Slot of the flow
  std::vector<std::vector<std::span<const float>>> input_gradients_;  // of blocks here, by block; of the last pass
  std::map<std::pair<int, int>, int> gradient_of_;                    // by value and layout
  // For gradients with several parts, by Slot: copies of those of blocks here, and the sum. Of those with one part, a
  // copy if passes are interleaved.
  std::vector<std::vector<std::vector<float>>> parts_;
  std::vector<std::vector<float>> sums_;
  std::vector<std::span<const float>> arguments_;
};

}  // namespace medley::worker

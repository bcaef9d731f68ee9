#include "worker/pipeline/value_store.h"

#include <algorithm>
#include <functional>

namespace medley::worker {

using program::Block;
using program::Program;

ValueStore::ValueStore(const Program& program, bool interleaved, int micros)
    : program_(program), interleaved_(interleaved), micros_(static_cast<size_t>(micros)) {
  outputs_.resize(program.values.size() * micros_);
  received_.resize(program.flows.size() * micros_);
  input_gradients_.resize(program.blocks.size());
  parts_.resize(program.gradients.size() * micros_);
  sums_.resize(parts_.size());
  for (size_t g = 0; g < program.gradients.size(); ++g) {
    const program::Gradient& gradient = program.gradients[g];
    gradient_of_[{gradient.value, gradient.layout}] = static_cast<int>(g);
  }
}

std::span<const float> ValueStore::Gradient(int value, int layout, int micro) const {
  const int index = gradient_of_.at({value, layout});
  const program::Gradient& gradient = program_.gradients[static_cast<size_t>(index)];
  if (gradient.parts() > 1) return sums_[Slot(index, micro)];
  if (gradient.blocks.empty()) return received_[Slot(gradient.flows.front(), micro)];
  if (interleaved_) return parts_[Slot(index, micro)].front();
  const auto block = static_cast<size_t>(gradient.blocks.front());
  const std::vector<int>& inputs = program_.blocks[block].inputs;
  return input_gradients_[block][static_cast<size_t>(std::ranges::find(inputs, value) - inputs.begin())];
}

void ValueStore::SetOutputs(int block, int micro, Values outputs) {
  const std::vector<int>& values = program_.blocks[static_cast<size_t>(block)].outputs;
  for (size_t k = 0; k < values.size(); ++k) outputs_[Slot(values[k], micro)] = outputs[k];
}

// One of several parts is copied, because the block may compute another micro-batch before they are added. So is the
// only one if other passes may come before it is used.
void ValueStore::SetInputGradients(int block, int micro, Values gradients) {
  input_gradients_[static_cast<size_t>(block)].assign(gradients.begin(), gradients.end());
  const std::vector<int>& inputs = program_.blocks[static_cast<size_t>(block)].inputs;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int index = gradient_of_.at({inputs[k], LayoutOf(block)});
    const program::Gradient& gradient = program_.gradients[static_cast<size_t>(index)];
    if (gradient.parts() < 2 && !interleaved_) continue;
    std::vector<std::vector<float>>& parts = parts_[Slot(index, micro)];
    parts.resize(gradient.blocks.size());
    const auto part = std::ranges::find(gradient.blocks, block) - gradient.blocks.begin();
    parts[static_cast<size_t>(part)].assign(gradients[k].begin(), gradients[k].end());
  }
}

Values ValueStore::InputsOf(int block, int micro) {
  arguments_.clear();
  const int layout = LayoutOf(block);
  for (const int index : program_.blocks[static_cast<size_t>(block)].inputs) {
    const program::Value& value = program_.values[static_cast<size_t>(index)];
    if (LayoutOf(value.block) == layout) {
      arguments_.push_back(outputs_[Slot(index, micro)]);
      continue;
    }
    const auto flow =
        std::ranges::find(value.flows, layout, [&](int f) { return program_.flows[static_cast<size_t>(f)].to_layout; });
    arguments_.push_back(received_[Slot(*flow, micro)]);
  }
  return arguments_;
}

Values ValueStore::OutputGradientsOf(int block, int micro) {
  arguments_.clear();
  for (const int value : program_.blocks[static_cast<size_t>(block)].outputs) {
    arguments_.push_back(Gradient(value, LayoutOf(block), micro));
  }
  return arguments_;
}

void ValueStore::Sum(int gradient, int micro) {
  std::vector<float>& sum = sums_[Slot(gradient, micro)];
  bool first = true;
  const auto add = [&](const std::vector<float>& part) {
    if (first) {
      sum = part;
    } else {
      std::ranges::transform(sum, part, sum.begin(), std::plus<>());
    }
    first = false;
  };
  for (const std::vector<float>& part : parts_[Slot(gradient, micro)]) add(part);
  for (const int flow : program_.gradients[static_cast<size_t>(gradient)].flows) add(received_[Slot(flow, micro)]);
}

}  // namespace medley::worker

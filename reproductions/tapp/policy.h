// The two networks of tapp and their training (TAPP, sections 4.1 to 4.3).
//
//   Partition: the 32 numbers of a layer -> 64 (ReLU) -> a group. Groups are drawn layer by layer.
//   Allocation: the vector of each group that has layers (mean of its layers' numbers; which groups use its outputs)
//   -> an encoder of two recurrent layers -> a decoder with attention, which is fed with the device that it chose
//   before. It emits devices for a group until it emits the end of the group.
//
// Both logits are 5 tanh(x). Not thread-safe. The same (features, settings, seed, advantages) give the same draws.
#pragma once

#include <memory>
#include <vector>

#include "reproductions/tapp/features.h"

namespace medley::reproductions::tapp {

struct TappSettings {
  // kGroups: the paper's, a group number for each layer. kCuts: whether a layer begins a new group, so groups are
  // neighbouring layers.
  enum class Partition { kGroups, kCuts };
  Partition partition = Partition::kCuts;
  int groups = 0;  // kGroups: how many numbers there are
  int partition_units = 64;
  int units = 256;
  double learning_rate = 2e-3;  // of Adam
  double clip = 1;              // of the norm of all gradients
  double tanh_constant = 5;
  double entropy = 2;  // weight of the mean entropy of the choices of a draw; 0: none
};

// What the policy draws: an assignment that RepairPipeline makes legal.
struct TappDraw {
  std::vector<int> group_of_layer;
  std::vector<std::vector<int>> devices_of_group;
};

class TappPolicy {
 public:
  TappPolicy(std::vector<LayerFeatures> layers, int devices, const TappSettings& settings, uint64_t seed);
  ~TappPolicy();

  // Draws assignments, at least one, and keeps the probability of each choice until Learn or the next call.
  std::vector<TappDraw> Draw(int count);
  // The most likely choice each time.
  TappDraw MostLikely();
  // One step of Adam along the mean over the last draws of advantage times the gradient of the logarithm of its
  // probability (Equations 3 and 4), one advantage for each draw.
  void Learn(const std::vector<double>& advantages);

 private:
  class Networks;
  const std::unique_ptr<Networks> networks_;
};

}  // namespace medley::reproductions::tapp

// The networks of the agent (HeteroG, sections 4.1.1 and 4.1.2) and their training (4.1.3).
//
//   graph attention: layers of heads over each operation's neighbours (Velickovic and others 2018), the outputs of all
//   heads side by side -> a vector for each group, the mean of its operations' and the group's own numbers
//   -> Transformer-XL (Dai and others 2019): relative positions, and segments that also see the one before
//   -> a softmax over M + 4 actions of each group.
//
// The paper's last layer has M + 4 outputs, so its weights serve only clusters of M devices. Here the logit of "this
// group on this device" comes from the vectors of the group, of the device and of the pair, so that the same weights
// serve any cluster. Not thread-safe. The same (features, settings, seed, advantages) give the same draws.
#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reproductions/heterog/features.h"

namespace medley::reproductions::heterog {

struct AgentSettings {
  int attention_layers = 3;
  int attention_heads = 4;
  int strategy_layers = 2;
  int strategy_heads = 4;
  int units = 64;               // of a vector; a multiple of both numbers of heads
  int segment = 64;             // groups that see one another
  double learning_rate = 1e-3;  // of Adam
  double clip = 1;              // of the norm of all gradients
  double entropy = 1;           // weight of the mean entropy of a group's action
  // Bounds the logits, so that no action becomes so likely that nothing else is ever drawn: with 16 actions the most
  // likely one has at most 99.5 %. The paper relies on the entropy alone, which does not prevent it here.
  double most_logit = 4;

  // The sizes of the paper: 12 layers of 8 heads, 8 layers. It does not print the width; 128 was chosen.
  static AgentSettings Paper();
};

// One action for each group.
using AgentDraw = std::vector<int>;

class AgentPolicy {
 public:
  AgentPolicy(const AgentSettings& settings, uint64_t seed);
  ~AgentPolicy();

  // Draws at least one strategy for a question, and keeps their probabilities until Learn or the next call; behind
  // them those of `given`.
  std::vector<AgentDraw> Draw(const AgentFeatures& features, int count, std::vector<AgentDraw> given = {});
  // The most likely action of each group.
  AgentDraw MostLikely(const AgentFeatures& features);
  // Adds the gradient of the mean over the last draws of advantage x logarithm of the probability, one advantage for
  // each draw and given strategy, and of the entropy. Several questions may add theirs before a step.
  void Learn(const std::vector<double>& advantages);
  // One step of Adam.
  void Step();

  // Bytes of the weights; at most a few MB. PyTorch reads them.
  std::string Save() const;
  // Errors: InvalidArgument for bytes that are no weights, or of another version or size of the networks. The bytes
  // must be trusted: they are a pickle.
  absl::Status Load(std::string_view bytes);

 private:
  class Networks;
  const std::unique_ptr<Networks> networks_;
};

}  // namespace medley::reproductions::heterog

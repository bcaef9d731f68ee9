// A policy over sequences of decisions: sampling, log-probabilities and the policy gradient, batched over samples.
//
// All samples of a batch see the same features, so their projection is computed once a step. float is for use, double
// for checking gradients. A policy is a value; its const functions are thread-safe, each caller with its own Rollout.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/policy_net/policy_shape.h"

namespace medley::policy_net {

// What the steps of one sequence are like.
struct PolicyInputs {
  int steps = 0;
  std::vector<float> features;   // [step][feature]
  std::vector<uint8_t> allowed;  // [step][action]: 1 when it may be taken; one at least a step
};

// A batch of sequences and what the gradient needs of the pass that made them. Reusable: keeps its memory.
template <typename S>
class Rollout {
 public:
  Rollout();
  ~Rollout();
  Rollout(Rollout&&) noexcept;
  Rollout& operator=(Rollout&&) noexcept;

  int samples = 0;
  std::vector<int> actions;             // [sample][step]
  std::vector<double> log_probability;  // [sample]: of the whole sequence
  double entropy = 0;                   // nats of a decision, mean over steps and samples

  std::span<const int> Actions(int sample) const {
    const size_t steps = actions.size() / static_cast<size_t>(samples);
    return {actions.data() + static_cast<size_t>(sample) * steps, steps};
  }

  struct Tape;
  std::unique_ptr<Tape> tape;  // activations
};

template <typename S>
class RecurrentPolicy {
 public:
  // Random weights: the first decision is nearly uniform, and each next one repeats the one before with a probability
  // of nearly `persistence`, in (0, 1), wherever all actions are allowed.
  RecurrentPolicy(const PolicyShape& shape, double persistence, base::Rng& rng);
  // `parameters` as laid out by ParameterLayout.
  RecurrentPolicy(const PolicyShape& shape, std::vector<S> parameters);

  const PolicyShape& shape() const { return shape_; }
  const std::vector<S>& parameters() const { return parameters_; }
  std::vector<S>& parameters() { return parameters_; }

  // Draws `samples` sequences.
  void Sample(const PolicyInputs& inputs, int samples, base::Rng& rng, Rollout<S>& rollout) const;
  // The pass for given sequences: `actions` is [sample][step], all allowed.
  void Follow(const PolicyInputs& inputs, const std::vector<int>& actions, Rollout<S>& rollout) const;
  // The most probable action of each step, given those before it.
  std::vector<int> Greedy(const PolicyInputs& inputs) const;

  // Adds to `gradient` the gradient of
  //   sum_n weights[n] log p(sample n) + entropy_weight * sum over samples and steps of the entropy
  // by the parameters, at the rollout of a pass with the same inputs and parameters.
  void AddGradient(const PolicyInputs& inputs, const Rollout<S>& rollout, std::span<const S> weights, S entropy_weight,
                   std::vector<S>& gradient) const;

 private:
  PolicyShape shape_;
  ParameterLayout layout_;
  std::vector<S> parameters_;
};

extern template class Rollout<float>;
extern template class Rollout<double>;
extern template class RecurrentPolicy<float>;
extern template class RecurrentPolicy<double>;

}  // namespace medley::policy_net

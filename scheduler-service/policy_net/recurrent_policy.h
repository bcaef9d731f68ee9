// A policy over sequences of decisions: sampling, log-probabilities and the policy gradient, batched over samples.
//
// All samples of a batch have the same features, so the projection of the features is computed once per step. Planners
// use float; tests use double to check gradients. A policy is a value. Its const functions are thread-safe if each
// caller has its own Rollout.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/policy_net/policy_shape.h"

namespace medley::sched::policy_net {

// The inputs of the steps of a sequence.
struct PolicyInputs {
  int steps = 0;
  std::vector<float> features;   // [step][feature]
  std::vector<uint8_t> allowed;  // [step][action]: 1 if the action is allowed; each step has at least one
};

// A batch of sequences, with the activations that the gradient needs. Reuse it to avoid allocations.
template <typename S>
class Rollout {
 public:
  Rollout();
  ~Rollout();
  Rollout(Rollout&&) noexcept;
  Rollout& operator=(Rollout&&) noexcept;

  int samples = 0;
  std::vector<int> actions;             // [sample][step]
  std::vector<double> log_probability;  // [sample], of the whole sequence
  double entropy = 0;                   // in nats per decision, mean over steps and samples

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
  // Initializes random weights. If all actions are allowed, the first decision is nearly uniform, and each further one
  // repeats the previous action with a probability of about `persistence`, in (0, 1).
  RecurrentPolicy(const PolicyShape& shape, double persistence, base::Rng& rng);
  // `parameters` must have the layout of ParameterLayout.
  RecurrentPolicy(const PolicyShape& shape, std::vector<S> parameters);

  const PolicyShape& shape() const { return shape_; }
  const std::vector<S>& parameters() const { return parameters_; }
  std::vector<S>& parameters() { return parameters_; }

  // Draws `samples` sequences.
  void Sample(const PolicyInputs& inputs, int samples, base::Rng& rng, Rollout<S>& rollout) const;
  // Runs the forward pass for given sequences: `actions` is [sample][step], and all of them must be allowed.
  void Follow(const PolicyInputs& inputs, const std::vector<int>& actions, Rollout<S>& rollout) const;
  // Chooses at each step the most probable action, given the previous ones.
  std::vector<int> Greedy(const PolicyInputs& inputs) const;

  // Adds to `gradient` the gradient, with respect to the parameters, of
  //   sum_n weights[n] log p(sample n) + entropy_weight * sum over samples and steps of the entropy.
  // `rollout` must come from a pass with the same inputs and parameters.
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

}  // namespace medley::sched::policy_net

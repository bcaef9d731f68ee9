// REINFORCE with a moving-average baseline b (HeterPS, Algorithm 1). Every round draws N sequences from the policy,
// evaluates their costs, and takes an ascent step along  1/N sum_n (b - cost_n) / s  grad log p(sequence n).
//
// Differences from the paper: b starts at the mean of the first round, not at 0. Advantages are divided by a moving
// scale s and clipped, so that one learning rate works for all models. A decaying entropy bonus prevents early
// convergence. The optimizer is Adam. Not thread-safe. The policy and the inputs must outlive the object.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler-service/policy_net/adam.h"
#include "scheduler-service/policy_net/recurrent_policy.h"

namespace medley::sched::policy_net {

struct ReinforceOptions {
  int samples_per_round = 0;  // N
  double learning_rate = 0;
  double baseline_decay = 0;  // gamma
  double entropy_bonus = 0;   // in the first round, in units of the advantage per nat
  double entropy_decay = 1;   // factor per round
  double advantage_clip = 0;
  double clip_norm = 0;
};

// Lower is better. Must be finite; the unit does not matter.
using SequenceCost = std::function<double(std::span<const int> actions)>;

struct RoundResult {
  double mean_cost = 0;
  double least_cost = 0;
  double entropy = 0;  // in nats per decision, before the update
};

class Reinforce {
 public:
  Reinforce(RecurrentPolicy<float>& policy, const PolicyInputs& inputs, const ReinforceOptions& options);
  RoundResult Round(const SequenceCost& cost, base::Rng& rng);

 private:
  RecurrentPolicy<float>& policy_;
  const PolicyInputs& inputs_;
  const ReinforceOptions options_;
  Adam<float> adam_;
  Rollout<float> rollout_;
  std::vector<float> gradient_;
  double baseline_ = 0;
  double scale_ = 0;  // moving mean square of cost - baseline
  double entropy_bonus_;
  bool begun_ = false;
};

}  // namespace medley::sched::policy_net

// REINFORCE with a moving-average baseline (HeterPS, Algorithm 1): every round draws sequences from the policy, learns
// their costs, and climbs  1/N sum_n (b - cost_n) / s  grad log p(sequence n).
//
// Beyond the paper: b begins at the first round's mean, not at 0; advantages are divided by a moving scale s and
// clipped, so that one learning rate does for every model; an entropy bonus that fades keeps it from settling early;
// and Adam takes the steps. Not thread-safe. Refers to a policy and inputs that outlive it.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "scheduler-service/policy_net/adam.h"
#include "scheduler-service/policy_net/recurrent_policy.h"

namespace medley::policy_net {

struct ReinforceOptions {
  int samples_per_round = 0;  // N
  double learning_rate = 0;
  double baseline_decay = 0;  // gamma
  double entropy_bonus = 0;   // at the first round, in advantages a nat
  double entropy_decay = 1;   // a round
  double advantage_clip = 0;
  double clip_norm = 0;
};

// Lower is better; any finite unit.
using SequenceCost = std::function<double(std::span<const int> actions)>;

struct RoundResult {
  double mean_cost = 0;
  double least_cost = 0;
  double entropy = 0;  // nats a decision, before the update
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
  double scale_ = 0;  // moving root mean square of cost - baseline
  double entropy_bonus_;
  bool begun_ = false;
};

}  // namespace medley::policy_net

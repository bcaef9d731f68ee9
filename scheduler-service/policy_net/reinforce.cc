#include "scheduler-service/policy_net/reinforce.h"

#include <algorithm>
#include <cmath>

namespace medley::sched::policy_net {

Reinforce::Reinforce(RecurrentPolicy<float>& policy, const PolicyInputs& inputs, const ReinforceOptions& options)
    : policy_(policy),
      inputs_(inputs),
      options_(options),
      adam_(policy.parameters().size(), {.learning_rate = options.learning_rate, .clip_norm = options.clip_norm}),
      gradient_(policy.parameters().size()),
      entropy_bonus_(options.entropy_bonus) {}

RoundResult Reinforce::Round(const SequenceCost& cost, base::Rng& rng) {
  const int samples = options_.samples_per_round;
  policy_.Sample(inputs_, samples, rng, rollout_);
  std::vector<double> costs(static_cast<size_t>(samples));
  for (int n = 0; n < samples; ++n) costs[static_cast<size_t>(n)] = cost(rollout_.Actions(n));
  RoundResult result;
  result.entropy = rollout_.entropy;
  result.least_cost = *std::min_element(costs.begin(), costs.end());
  for (const double c : costs) result.mean_cost += c / samples;
  if (!begun_) baseline_ = result.mean_cost;
  double squares = 0;
  for (const double c : costs) squares += (c - baseline_) * (c - baseline_) / samples;
  scale_ = begun_ ? scale_ + options_.baseline_decay * (squares - scale_) : squares;
  begun_ = true;

  const double divisor = std::sqrt(scale_) + 1e-6;
  std::vector<float> weights;
  for (const double c : costs) {
    const double advantage = std::clamp((baseline_ - c) / divisor, -options_.advantage_clip, options_.advantage_clip);
    weights.push_back(static_cast<float>(advantage / samples));
  }
  std::fill(gradient_.begin(), gradient_.end(), 0.0F);
  policy_.AddGradient(inputs_, rollout_, weights, static_cast<float>(entropy_bonus_ / samples), gradient_);
  adam_.Climb(gradient_, policy_.parameters());
  baseline_ += options_.baseline_decay * (result.mean_cost - baseline_);
  entropy_bonus_ *= options_.entropy_decay;
  return result;
}

}  // namespace medley::sched::policy_net

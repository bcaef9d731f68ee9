// A policy with shared weights for questions of any size: a small network scores each (layer, type) from numbers, and
// schedules are drawn from the chain of layers with these scores and a penalty for each change of the type:
//
//   P(schedule) ~ exp(sum over layers of score(layer, type) - penalty * changes of the type)
//
// Types have no names here, only numbers: what a layer costs there, what the quotas cost (the multipliers of
// planner/layer_bound.h), how much of the limit it takes, what does not divide, synchronisation, transfer, memory, and
// the same over neighbouring layers. So one policy serves every question. It is trained on schedules of good plans by
// maximum likelihood; the gradient of the chain is exact (forward and backward sums).
#pragma once

#include <array>
#include <vector>

#include "common/base/rng.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {

inline constexpr int kPairFeatures = 16;

// Scores of layers on types and the penalty of a change. Pairs that are not allowed have -infinity.
struct ChainScores {
  int layers = 0;
  int types = 0;
  std::vector<double> score;  // [layer * types + type]
  double penalty = 0;
  double At(int layer, int t) const { return score[static_cast<size_t>(layer * types + t)]; }
};

// The distribution of schedules at a temperature. Immutable.
class Chain {
 public:
  explicit Chain(ChainScores scores, double temperature = 1);
  std::vector<int> MostProbable() const;
  std::vector<int> Draw(base::Rng& rng) const;
  // Draws layers first..last of `schedule` again, given the others.
  void DrawAgain(int first, int last, base::Rng& rng, std::vector<int>& schedule) const;

 private:
  // Logarithms of the sums over layers before, by type, of layers first..last given the type before (-1: none).
  std::vector<double> Forward(int first, int last, int before) const;

  ChainScores scores_;
};

// The gradient of -log P(schedule) by scores (the marginals less what the schedule has) and by the penalty.
struct ChainGradient {
  double loss = 0;
  std::vector<double> score;
  double penalty = 0;
};
ChainGradient GradientOf(const ChainScores& scores, const std::vector<int>& schedule);

// What the network reads. Takes milliseconds: a bound of single layers is computed.
struct PairNumbers {
  int layers = 0;
  int types = 0;
  std::vector<float> values;       // [layer][type][kPairFeatures]
  std::vector<char> allowed;       // [layer][type]
  std::array<double, 3> question;  // of the penalty: 1, log of layers, log of types
};
PairNumbers NumbersOf(const Problem& problem);

// Log of the least price per throughput of each layer, over that of the pair: what a greedy planner goes by.
ChainScores GreedyScores(const PairNumbers& numbers, double sharpness, double penalty);
// The same with the quotas' multipliers: what the bound of single layers goes by.
ChainScores BoundScores(const PairNumbers& numbers, double sharpness, double penalty);

// The network: kPairFeatures, 32 and 16 hidden units, one score.
class SharedPolicy {
 public:
  explicit SharedPolicy(base::Rng& rng);
  ChainScores ScoresOf(const PairNumbers& numbers) const;
  // A step of Adam down the gradient of the schedule's loss by layer. Returns the loss by layer.
  double Learn(const PairNumbers& numbers, const std::vector<int>& schedule, double rate);
  std::vector<double>& parameters() { return parameters_; }

 private:
  struct Activations;
  double Score(const float* in, Activations& a) const;
  void AddGradient(const float* in, const Activations& a, double upstream, std::vector<double>& gradient) const;

  std::vector<double> parameters_;
  std::vector<double> mean_, square_;
  int64_t steps_ = 0;
};

}  // namespace medley::sched

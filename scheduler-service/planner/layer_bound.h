// A lower bound of the cost of all plans from single layers, for models with any number of layers: no stage is looked
// at.
//
// A stage with k units that reaches x samples/s has k >= parallel / (B / x - serial), by its computation and by its
// communication. Both parts are at least the sums over its layers, and serial is at least that of any of them. So its
// cost per sample/s is at least the sum over its layers of price / B * parallel / (1 - x serial / B), where parallel
// may be any mix of both parts (the same mix for all layers of a type), and grows with x. Each layer is on some type,
// so the sum over layers of the least over types is a lower bound for plans of `low` samples/s and more. Limits of
// types and maxUnits enter with multipliers, as in relaxation.h: units needed at `low` are needed at every throughput
// above. Time and memory: layers * types. Not thread-safe while it improves.
#pragma once

#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

class LayerBound {
 public:
  // For plans of at least `low` samples/s, which may be 0. With `schedule`, the type of each layer, for those that keep
  // it. `priced` false: prices do not count, and a rate above 0 means that no plan meets the quotas.
  LayerBound(const Problem& problem, double low, const std::vector<int>* schedule = nullptr, bool priced = true);

  // Improves multipliers and mixes by at most `rounds` subgradient steps, until the rate reaches `cutoff` or the
  // budget, which may be null, is spent.
  void Improve(double cutoff, int rounds, const Budget* budget = nullptr);
  // A lower bound of the rate of all plans, in USD/h per sample/s; infinite if some layer reaches `low` on no type.
  double rate() const { return rate_; }
  // How much more than rate() every plan costs at least that has the layer on type `t`; of several layers, their sum.
  double Excess(int layer, int t) const { return excess_[Index(layer, t)]; }
  // True if plans with `excess` reach `cutoff`, despite rounding.
  bool Excludes(double excess, double cutoff) const { return (rate_ + excess) * (1 - 1e-11) >= cutoff; }
  // The least that a layer costs on any type, without multipliers.
  double LeastRateOf(int layer) const;
  // By type, then of maxUnits, in USD/h per sample/s and unit: those of Relaxation, without that of stages.
  const std::vector<double>& multipliers() const { return best_.multipliers; }
  // The quotas that the bound rests on: their multipliers are above 0. Types, then types() for maxUnits.
  std::vector<int> BindingQuotas() const;

 private:
  // What a layer needs on a type, per sample/s.
  struct Need {
    double compute = kInfinity;  // units by computation; infinite: `low` is out of reach
    double comm = 0;             // units by communication
    double servers = 0;          // units of the server type
  };
  // Weights of the layers' units and servers in the bound, by component.
  struct Weights {
    std::vector<double> multipliers;  // by type, then of maxUnits, in USD/h per sample/s and unit
    std::vector<double> mix;          // by type: the part of communication
  };

  size_t Index(int layer, int t) const { return static_cast<size_t>(layer) * types_ + static_cast<size_t>(t); }
  double UnitsOf(const Need& need, size_t t, const Weights& weights) const;
  double WeightOf(const Need& need, size_t t, const Weights& weights) const;
  double QuotaOf(size_t component) const;
  // The bound for `weights`, and the units and the difference communication - computation of the types that are the
  // least of their layers.
  double RateFor(const Weights& weights, std::vector<double>& use, std::vector<double>& more_comm) const;
  void Keep(double rate, const Weights& weights);
  void ImproveQuotas(int rounds, const Budget* budget);

  const Problem& problem_;
  const double low_;
  const size_t types_;
  const bool priced_;
  std::vector<Need> needs_;  // [layer * types + type]
  Weights best_;
  double rate_ = 0;
  std::vector<double> excess_;
};

}  // namespace medley::sched

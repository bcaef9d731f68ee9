#include "scheduler-service/planner/layer_bound.h"

#include <algorithm>
#include <cmath>

namespace medley::sched {
namespace {

constexpr double kRoundedDown = 1 - 1e-12;  // keeps a lower bound valid despite rounding
constexpr double kRest = 1e-9;  // of the batch's seconds, below which rounding may hide what is left of them
constexpr double kFirstMixStep = 0.25;

}  // namespace

LayerBound::LayerBound(const Problem& problem, double low, const std::vector<int>* schedule, bool priced)
    : problem_(problem),
      low_(low),
      types_(static_cast<size_t>(problem.types())),
      priced_(priced),
      needs_(static_cast<size_t>(problem.layers()) * types_) {
  best_.multipliers.assign(types_ + 1, 0);
  best_.mix.assign(types_, 0);
  std::vector<double> computes(types_, 0), moves(types_, 0);
  const double batch = problem.batch();
  for (int layer = 0; layer < problem.layers(); ++layer) {
    for (int t = 0; t < problem.types(); ++t) {
      if (schedule != nullptr && (*schedule)[static_cast<size_t>(layer)] != t) continue;
      if (problem.limit(t) < problem.min_units() || !problem.Allowed(layer, layer, t)) continue;
      const StageTerms terms = problem.LayerTerms(layer, t);
      const double left = batch - low * terms.compute_serial, comm_left = batch - low * terms.comm_serial;
      if (!(left > -kRest * batch && comm_left > -kRest * batch)) continue;
      Need need;
      const auto units = [&](double parallel, double rest) {
        return parallel / (std::max(rest, 0.0) + kRest * batch) * kRoundedDown;
      };
      need.compute = units(terms.compute_parallel, left);
      need.comm = units(terms.comm_parallel, comm_left);
      need.servers = problem.Servers(layer, layer, t).seconds / batch * kRoundedDown;
      computes[static_cast<size_t>(t)] += need.compute;
      moves[static_cast<size_t>(t)] += need.comm;
      needs_[Index(layer, t)] = need;
    }
  }
  for (size_t t = 0; t < types_; ++t) best_.mix[t] = moves[t] > computes[t] ? 1 : 0;
  std::vector<double> use, more_comm;
  Keep(RateFor(best_, use, more_comm), best_);
}

double LayerBound::UnitsOf(const Need& need, size_t t, const Weights& weights) const {
  return (1 - weights.mix[t]) * need.compute + weights.mix[t] * need.comm;
}

double LayerBound::WeightOf(const Need& need, size_t t, const Weights& weights) const {
  const double price = priced_ ? problem_.price(static_cast<int>(t)) : 0;
  double weight = UnitsOf(need, t, weights) * (price + low_ * (weights.multipliers[t] + weights.multipliers[types_]));
  if (need.servers > 0 && problem_.server_type() >= 0) {
    const double server_price = priced_ ? problem_.server_price() : 0;
    weight += need.servers * (server_price + low_ * weights.multipliers[static_cast<size_t>(problem_.server_type())]);
  }
  return weight;
}

double LayerBound::QuotaOf(size_t component) const {
  if (component < types_) return problem_.limit(static_cast<int>(component));
  const int most = problem_.request().constraints.max_units;
  return most > 0 ? most : kInfinity;
}

double LayerBound::RateFor(const Weights& weights, std::vector<double>& use, std::vector<double>& more_comm) const {
  use.assign(types_ + 1, 0);
  more_comm.assign(types_, 0);
  double sum = 0, size = 0;
  for (int layer = 0; layer < problem_.layers(); ++layer) {
    double least = kInfinity;
    size_t best = 0;
    for (size_t t = 0; t < types_; ++t) {
      const Need& need = needs_[static_cast<size_t>(layer) * types_ + t];
      if (!(need.compute < kInfinity)) continue;
      const double weight = WeightOf(need, t, weights);
      if (weight >= least) continue;
      least = weight;
      best = t;
    }
    if (least == kInfinity) return kInfinity;
    sum += least;
    const Need& need = needs_[static_cast<size_t>(layer) * types_ + best];
    const double units = low_ * UnitsOf(need, best, weights);
    use[best] += units;
    use[types_] += units;
    more_comm[best] += need.comm - need.compute;
    if (problem_.server_type() >= 0) use[static_cast<size_t>(problem_.server_type())] += low_ * need.servers;
  }
  size = sum;
  for (size_t c = 0; c <= types_; ++c) {
    if (weights.multipliers[c] <= 0 || !(QuotaOf(c) < kInfinity)) continue;
    sum -= weights.multipliers[c] * QuotaOf(c);
    size += weights.multipliers[c] * QuotaOf(c);
  }
  return sum - 1e-11 * size;
}

void LayerBound::Keep(double rate, const Weights& weights) {
  best_ = weights;
  rate_ = priced_ ? std::max(rate, 0.0) : rate;
  excess_.assign(needs_.size(), kInfinity);
  for (int layer = 0; layer < problem_.layers(); ++layer) {
    double least = kInfinity;
    for (size_t t = 0; t < types_; ++t) {
      const size_t i = static_cast<size_t>(layer) * types_ + t;
      if (needs_[i].compute < kInfinity) excess_[i] = WeightOf(needs_[i], t, weights);
      least = std::min(least, excess_[i]);
    }
    for (size_t t = 0; t < types_; ++t) {
      double& more = excess_[static_cast<size_t>(layer) * types_ + t];
      if (more < kInfinity) more = (more - least) * kRoundedDown;
    }
  }
  // A bound below 0 says nothing, but what a type costs more is relative to it.
  if (priced_ && rate < 0) {
    for (double& more : excess_) more = more < kInfinity ? std::max(0.0, more + rate) : more;
  }
}

// Multipliers of quotas alone: multiplicative weights on what each quota is used of, which stay on a simplex.
void LayerBound::ImproveQuotas(int rounds, const Budget* budget) {
  Weights weights = best_;
  std::vector<double> parts(types_ + 1, 0), use, more_comm;
  for (size_t c = 0; c <= types_; ++c) parts[c] = QuotaOf(c) >= 1 && QuotaOf(c) < kInfinity ? 1 : 0;
  for (int round = 0; round < rounds && rate_ <= 0; ++round) {
    if (budget != nullptr && budget->Spent()) return;
    double sum = 0;
    for (const double part : parts) sum += part;
    if (sum <= 0) return;
    for (size_t c = 0; c <= types_; ++c) weights.multipliers[c] = parts[c] > 0 ? parts[c] / sum / QuotaOf(c) : 0;
    const double rate = RateFor(weights, use, more_comm);
    if (rate > 0) return Keep(rate, weights);
    bool fits = true;
    double fullest = 0, unit = 0;
    for (size_t c = 0; c <= types_; ++c) {
      fits = fits && use[c] <= QuotaOf(c);
      if (parts[c] > 0) fullest = std::max(fullest, use[c] / QuotaOf(c));
    }
    if (fits || fullest <= 0) return;  // these types meet the quotas, so single layers prove nothing
    const double step = 1 / (1 + 0.05 * round);
    for (size_t c = 0; c <= types_; ++c) {
      if (parts[c] > 0) parts[c] = parts[c] / sum * (1 + step * use[c] / QuotaOf(c) / fullest);
    }
    for (size_t t = 0; t < types_; ++t) unit = std::max(unit, std::abs(more_comm[t]));
    for (size_t t = 0; t < types_ && unit > 0; ++t) {
      weights.mix[t] = std::clamp(weights.mix[t] + kFirstMixStep * step * more_comm[t] / unit, 0.0, 1.0);
    }
  }
}

void LayerBound::Improve(double cutoff, int rounds, const Budget* budget) {
  if (!priced_) return ImproveQuotas(rounds, budget);
  Weights weights = best_;
  Weights best = best_;
  std::vector<double> use, more_comm;
  double least = rate_, scale = 1;
  int since = 0;
  for (int round = 0; round < rounds && least < cutoff; ++round) {
    if (budget != nullptr && budget->Spent()) break;
    const double rate = RateFor(weights, use, more_comm);
    if (rate == kInfinity) break;
    if (rate > least) {
      since = rate > least + 1e-5 * std::abs(least) ? 0 : since + 1;
      least = rate;
      best = weights;
    } else {
      ++since;
    }
    if (since >= 4) {
      scale /= 2;
      since = 0;
      weights = best;
      RateFor(weights, use, more_comm);
    }
    double norm = 0, unit = 0;
    for (size_t c = 0; c <= types_; ++c) {
      const double quota = QuotaOf(c);
      if (!(quota < kInfinity) || (use[c] <= quota && weights.multipliers[c] == 0)) continue;
      const double over = use[c] / std::max(quota, 1.0) - 1;
      norm += over * over;
    }
    for (size_t t = 0; t < types_; ++t) unit = std::max(unit, std::abs(more_comm[t]));
    if (norm == 0 && unit == 0) break;
    if (unit > 0) {
      const double step = kFirstMixStep * scale;
      for (size_t t = 0; t < types_; ++t) {
        weights.mix[t] = std::clamp(weights.mix[t] + step * more_comm[t] / unit, 0.0, 1.0);
      }
    }
    if (norm == 0) continue;
    const double target = cutoff < kInfinity ? cutoff : std::abs(rate) * 1.5 + 1e-300;
    const double gain = std::max(target - rate, 1e-6 * std::abs(rate) + 1e-300);
    for (size_t c = 0; c <= types_; ++c) {
      const double quota = QuotaOf(c);
      if (!(quota < kInfinity)) continue;
      const double share = std::max(quota, 1.0);
      const double step = scale * gain / std::max(norm, 1e-4) * (use[c] / share - 1) / share;
      weights.multipliers[c] = std::max(0.0, weights.multipliers[c] + step);
    }
  }
  if (least > rate_) Keep(least, best);
}

double LayerBound::LeastRateOf(int layer) const {
  double least = kInfinity;
  const Weights none = {std::vector<double>(types_ + 1, 0), best_.mix};
  for (size_t t = 0; t < types_; ++t) {
    const Need& need = needs_[static_cast<size_t>(layer) * types_ + t];
    if (need.compute < kInfinity) least = std::min(least, WeightOf(need, t, none));
  }
  return least;
}

std::vector<int> LayerBound::BindingQuotas() const {
  std::vector<int> out;
  for (size_t c = 0; c <= types_; ++c) {
    if (best_.multipliers[c] > 0 && QuotaOf(c) < kInfinity) out.push_back(static_cast<int>(c));
  }
  return out;
}

}  // namespace medley::sched

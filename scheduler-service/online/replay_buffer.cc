#include "scheduler-service/online/replay_buffer.h"

#include <algorithm>

namespace medley::sched {
namespace {

constexpr double kNewest = 0.3;  // weight of the newest measurement in the moving average
constexpr int kSweeps = 100;

}  // namespace

const MeasuredSchedule* ReplayBuffer::Find(const std::vector<int>& schedule) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const MeasuredSchedule& m) { return m.schedule == schedule; });
  return found == all_.end() ? nullptr : &*found;
}

void ReplayBuffer::Add(std::vector<int> schedule, double log_cost, double log_probability, int64_t number) {
  if (const MeasuredSchedule* known = Find(schedule)) {
    MeasuredSchedule& m = all_[static_cast<size_t>(known - all_.data())];
    m.log_cost += kNewest * (log_cost - m.log_cost);
    m.log_probability = log_probability;
    m.observed = number;
    return;
  }
  if (all_.size() >= most_) {
    all_.erase(std::min_element(all_.begin(), all_.end(), [](const MeasuredSchedule& a, const MeasuredSchedule& b) {
      return a.observed < b.observed;
    }));
  }
  all_.push_back({std::move(schedule), log_cost, log_probability, number});
}

std::vector<double> SharesByType(const Problem& problem, const std::vector<int>& schedule) {
  std::vector<double> shares(static_cast<size_t>(problem.types()));
  double sum = 0;
  const std::vector<StageChoice> stages = StagesOf(schedule);
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageChoice& s = stages[i];
    const PlacedTerms terms = problem.TermsIn(stages, i);
    const double usd = problem.price(s.type) * std::max(terms.ComputeSeconds(1), terms.CommSeconds(1));
    shares[static_cast<size_t>(s.type)] += usd;
    sum += usd;
  }
  for (double& share : shares) share = sum > 0 ? share / sum : 0;
  return shares;
}

std::vector<double> RidgeWeights(const std::vector<std::vector<double>>& shares, const std::vector<double>& ratios,
                                 double ridge) {
  const size_t types = shares.empty() ? 0 : shares[0].size();
  std::vector<double> w(types);
  std::vector<double> rest = ratios;               // ratio - shares * w
  for (int sweep = 0; sweep < kSweeps; ++sweep) {  // coordinate descent on a convex quadratic
    for (size_t t = 0; t < types; ++t) {
      double squares = ridge, product = 0;
      for (size_t i = 0; i < shares.size(); ++i) {
        squares += shares[i][t] * shares[i][t];
        product += shares[i][t] * (rest[i] + shares[i][t] * w[t]);
      }
      const double next = product / squares;
      for (size_t i = 0; i < shares.size(); ++i) rest[i] -= shares[i][t] * (next - w[t]);
      w[t] = next;
    }
  }
  return w;
}

}  // namespace medley::sched

#include "reproductions/heterog/searches.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace medley::reproductions::heterog {

void SearchRandomly(const sched::GraphQuestion& q) {
  const sched::GraphStrategy around = q.timer.best();
  const auto sizes = sched::BucketSizes(q.problem);
  for (int64_t draw = 0, end = 20 * q.timer.left(); draw < end && !q.timer.Spent(); ++draw) {
    sched::GraphStrategy strategy = sched::Uniform(q, 0, sizes[q.rng.Below(sizes.size())], sched::OrderBy::kRank);
    if (draw % 2 == 1 && !around.actions.empty()) {
      strategy = sched::Changed(around, sched::DrawRun(q, around.actions.size()), sched::AnyAction(q));
    } else {
      for (int& action : strategy.actions) action = sched::AnyAction(q);
    }
    q.timer.Seconds(strategy);
  }
}

void SearchByMetropolis(const sched::GraphQuestion& q) {
  if (!sched::FindAny(q)) return;
  constexpr double kBeta = 20;
  sched::GraphStrategy at = q.timer.best();
  const double unit = q.timer.best_seconds();
  double seconds = unit;
  for (int64_t step = 0, end = 20 * q.timer.left(); step < end && !q.timer.Spent(); ++step) {
    sched::GraphStrategy changed = at;
    changed.actions[q.rng.Below(changed.actions.size())] = sched::AnyAction(q);
    const double other = q.timer.Seconds(changed);
    if (other > seconds && q.rng.Uniform() >= std::exp(-kBeta * (other - seconds) / unit)) continue;
    at = std::move(changed);
    seconds = other;
  }
}

void SearchByCrossEntropy(const sched::GraphQuestion& q) {
  constexpr int kDraws = 40, kElite = 4;
  constexpr double kKeep = 0.7;  // of the distributions, in each round
  const auto actions = static_cast<size_t>(sched::ActionCount(q.problem));
  std::vector<std::vector<double>> chance(static_cast<size_t>(q.groups.count()),
                                          std::vector<double>(actions, 1.0 / static_cast<double>(actions)));
  const int64_t bucket_bytes = q.timer.best().bucket_bytes;
  int known = 0;  // rounds without a simulation
  while (!q.timer.Spent() && known < 10) {
    const int64_t before = q.timer.calls();
    std::vector<std::pair<double, sched::GraphStrategy>> draws;
    for (int i = 0; i < kDraws && !q.timer.Spent(); ++i) {
      sched::GraphStrategy strategy = sched::Uniform(q, 0, bucket_bytes, sched::OrderBy::kRank);
      for (size_t g = 0; g < chance.size(); ++g) {
        double at = q.rng.Uniform();
        size_t action = 0;
        while (action + 1 < actions && at >= chance[g][action]) at -= chance[g][action++];
        strategy.actions[g] = static_cast<int>(action);
      }
      const double seconds = q.timer.Seconds(strategy);
      draws.emplace_back(seconds, std::move(strategy));
    }
    std::ranges::sort(draws);
    draws.resize(std::min<size_t>(draws.size(), kElite));
    for (size_t g = 0; g < chance.size(); ++g) {
      for (double& each : chance[g]) each *= kKeep;
      for (const auto& [seconds, strategy] : draws) {
        chance[g][static_cast<size_t>(strategy.actions[g])] += (1 - kKeep) / static_cast<double>(draws.size());
      }
    }
    known = q.timer.calls() == before ? known + 1 : 0;
  }
}

}  // namespace medley::reproductions::heterog

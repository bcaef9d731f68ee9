#include "scheduler-service/graph/balance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "scheduler-service/devices/shares.h"
#include "scheduler-service/planning/overlap.h"

namespace medley::sched {
namespace {

constexpr int kMostParts = 4096;

}  // namespace

std::vector<int> InProportion(const DeviceProblem& problem, std::vector<int> actions) {
  for (int& action : actions) {
    if (action == ActionOf(problem, Replicas::kEvenServer)) action = ActionOf(problem, Replicas::kProportionalServer);
    if (action == ActionOf(problem, Replicas::kEvenAllreduce)) {
      action = ActionOf(problem, Replicas::kProportionalAllreduce);
    }
  }
  return actions;
}

std::vector<int> BalancedCounts(const DeviceProblem& problem, const OperationGroups& groups,
                                const std::vector<int>& actions, bool alone) {
  const int devices = problem.devices();
  const int parts = std::min(kMostParts, problem.samples() / problem.micro_batches());
  std::vector<DeviceProblem::Work> work(static_cast<size_t>(devices));
  bool replicated = false;
  for (int i = 0; i < problem.layers(); ++i) {
    const int action = actions[static_cast<size_t>(groups.group_of[static_cast<size_t>(i)])];
    const bool everywhere = IsReplicated(problem, action);
    replicated |= everywhere;
    for (int d = 0; d < devices; ++d) {
      const DeviceProblem::Work own = problem.WorkOf(i, i + 1, d);
      DeviceProblem::Work& all = work[static_cast<size_t>(d)];
      if (everywhere) {
        all.fixed += own.fixed;
        all.variable += own.variable;
      } else if (action == d && alone) {
        all.fixed += own.At(1);
      }
    }
  }
  if (!replicated || parts < devices) return {};
  // A device that is busy with what it has alone gets one part, because each replica needs samples; the others
  // share the rest.
  std::vector<int> counts(static_cast<size_t>(devices), 1);
  std::vector<int> others(static_cast<size_t>(devices));
  std::iota(others.begin(), others.end(), 0);
  for (;;) {
    const int rest = parts - devices + static_cast<int>(others.size());
    std::vector<DeviceProblem::Work> scaled;
    for (const int d : others) {
      const DeviceProblem::Work& own = work[static_cast<size_t>(d)];
      scaled.push_back({own.fixed, own.variable * rest / parts});
    }
    const std::vector<double> shares = BalancedSamples(scaled, rest).shares;
    std::vector<int> left;
    for (size_t i = 0; i < others.size(); ++i) {
      counts[static_cast<size_t>(others[i])] = std::max(1, static_cast<int>(std::lround(shares[i] * rest)));
      if (shares[i] > 0) left.push_back(others[i]);
    }
    if (left.size() == others.size()) return counts;
    others = std::move(left);
  }
}

void BalanceShares(const GraphQuestion& q) {
  const GraphStrategy best = q.timer.best();
  if (best.actions.empty()) return;
  std::vector<std::vector<int>> choices = {InProportion(q.problem, best.actions)};
  for (const Replicas how : {Replicas::kProportionalServer, Replicas::kProportionalAllreduce}) {
    choices.push_back(Uniform(q, ActionOf(q.problem, how), 0, best.order).actions);
  }
  const std::array orders = {best.order, best.order == OrderBy::kRank ? OrderBy::kReady : OrderBy::kRank};
  for (const std::vector<int>& actions : choices) {
    for (const bool alone : {true, false}) {
      const std::vector<int> counts = BalancedCounts(q.problem, q.groups, actions, alone);
      if (counts.empty()) continue;
      for (const int64_t bytes : BucketSizes(q.problem)) {
        for (const OrderBy order : orders) q.timer.Seconds({actions, bytes, order, counts});
      }
    }
  }
}

}  // namespace medley::sched

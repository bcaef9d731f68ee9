#include "reproductions/heterog/bench/graph/ablation.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "reproductions/heterog/bench/graph/asked.h"
#include "scheduler-service/graph/balance.h"
#include "scheduler-service/graph/search.h"

namespace medley::reproductions::heterog {
namespace {

using sched::ActionOf;
using sched::BucketSizes;
using sched::kForever;
using sched::OrderBy;
using sched::Replicas;
using sched::Uniform;

// The best of the baselines, in one order or in any of them.
double TimeBaselines(const sched::GraphQuestion& q, const std::vector<OrderBy>& orders) {
  for (int how = 0; how < sched::kReplicaActions; ++how) {
    for (const int64_t bytes : BucketSizes(q.problem)) {
      for (const OrderBy order : orders) {
        q.timer.Seconds(Uniform(q, q.problem.devices() + how, bytes, order));
      }
    }
  }
  return q.timer.best_seconds();
}

// A search with a part of the decisions, from the best baseline.
double SearchOnly(const sched::DeviceProblem& problem, int most_groups, int64_t calls, std::vector<int> actions,
                  std::vector<OrderBy> orders) {
  Asked asked(problem, most_groups, 1, calls);
  sched::GraphQuestion q = asked.q;
  q.actions = std::move(actions);
  q.orders = std::move(orders);
  TimeBaselines(q, {OrderBy::kReady});
  SearchGraph(q);
  return asked.timer.best_seconds();
}

}  // namespace

absl::StatusOr<Ablation> Ablate(const sched::DeviceProblem& problem, int most_groups, int64_t calls) {
  Ablation out;
  Asked asked(problem, most_groups, 1, calls);
  out.baseline = TimeBaselines(asked.q, {OrderBy::kReady});
  if (out.baseline == kForever) return out;
  const int action = asked.timer.best().actions.front();
  const auto is = [&](Replicas how) { return action == ActionOf(problem, how); };
  const bool even = is(Replicas::kEvenServer) || is(Replicas::kEvenAllreduce);
  const bool served = is(Replicas::kEvenServer) || is(Replicas::kProportionalServer);
  const std::vector<int> by_reduction = {
      ActionOf(problem, even ? Replicas::kEvenServer : Replicas::kProportionalServer),
      ActionOf(problem, even ? Replicas::kEvenAllreduce : Replicas::kProportionalAllreduce)};
  const std::vector<int> by_share = {
      ActionOf(problem, served ? Replicas::kEvenServer : Replicas::kEvenAllreduce),
      ActionOf(problem, served ? Replicas::kProportionalServer : Replicas::kProportionalAllreduce)};
  std::vector<int> by_device = {action};
  for (int d = 0; d < problem.devices(); ++d) by_device.push_back(d);
  const std::vector<OrderBy> fifo = {OrderBy::kReady};

  out.rows.push_back({"order", TimeBaselines(asked.q, {sched::kOrders.begin(), sched::kOrders.end()})});
  out.rows.push_back({"reductions", SearchOnly(problem, most_groups, calls, by_reduction, fifo)});
  out.rows.push_back({"replicas", SearchOnly(problem, most_groups, calls, by_share, fifo)});
  out.rows.push_back({"placement", SearchOnly(problem, most_groups, calls, by_device, fifo)});
  Asked all(problem, most_groups, 1, calls);
  TryBaselines(all.q);
  SearchGraph(all.q);
  const double found = all.timer.best_seconds();
  out.rows.push_back({"all", found});
  all.timer.Allow(sched::kMostBalanceSimulations);
  BalanceShares(all.q);
  const double balanced = all.timer.best_seconds();
  out.rows.push_back({"and balanced", balanced});
  sched::Overlapping overlapping(*all.judge, all.limits);
  MEDLEY_ASSIGN_OR_RETURN(const auto next, OverlapBest(all.q, balanced, all.limits, overlapping));
  out.rows.push_back({"and next step", next ? next->found.figures.seconds : balanced});
  return out;
}

}  // namespace medley::reproductions::heterog

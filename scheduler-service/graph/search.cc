#include "scheduler-service/graph/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/graph/balance.h"
#include "scheduler-service/graph/strategy_bound.h"

namespace medley::sched {
namespace {

constexpr double kLess = 1 - 1e-9;

template <typename T>
void ShuffleAll(base::Rng& rng, std::vector<T>& values) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.Below(i)]);
}

// Climbs from a strategy and its seconds to one that no single change shortens, or until nothing is left.
class Climber {
 public:
  Climber(const GraphQuestion& q, const StrategyBound& bound, GraphStrategy start)
      : q_(q), bound_(bound), at_(std::move(start)), seconds_(q.timer.Seconds(at_)) {}

  void Climb() {
    while (!q_.timer.Spent()) {
      const double before = seconds_;
      // Runs while they help: of a large model, all single groups with all actions are more than most searches have.
      for (double last = kForever; seconds_ < last * kLess && !q_.timer.Spent();) {
        last = seconds_;
        Runs();
      }
      Schedules();
      if (q_.balances) Balance();
      Exchanges();
      // With few groups, restarts find more than these with as many simulations (graph_bench brute).
      constexpr size_t kFew = 12;
      if (at_.actions.size() > kFew) {
        Heaviest();
        Shares();
      }
      if (seconds_ < before * kLess) continue;
      Singles();
      if (seconds_ >= before * kLess) return;
    }
  }

 private:
  bool Offer(GraphStrategy changed) {
    // The bound knows whole replicas.
    const bool whole = changed.counts.empty();
    if (whole && bound_.Reaches(changed.actions, changed.actions.size(), seconds_ * kLess)) return false;
    const double seconds = q_.timer.Seconds(changed);
    if (seconds >= seconds_ * kLess) return false;
    at_ = std::move(changed);
    seconds_ = seconds;
    return true;
  }

  // Each group, in any order, by all actions.
  void Singles() {
    std::vector<size_t> order(at_.actions.size());
    std::iota(order.begin(), order.end(), size_t{0});
    ShuffleAll(q_.rng, order);
    for (const size_t g : order) {
      std::vector<int> actions = q_.actions;
      if (actions.empty()) {
        actions.resize(static_cast<size_t>(ActionCount(q_.problem)));
        std::iota(actions.begin(), actions.end(), 0);
      }
      ShuffleAll(q_.rng, actions);
      for (const int action : actions) {
        if (q_.timer.Spent()) return;
        if (action != at_.actions[g]) Offer(Changed(at_, {g, g + 1}, action));
      }
    }
  }

  // Replicas get shares by what each device computes; then one device gives a part of its share to another one, while
  // that helps.
  void Balance() {
    for (const bool alone : {true, false}) {
      GraphStrategy changed = at_;
      changed.actions = InProportion(q_.problem, at_.actions);
      changed.counts = BalancedCounts(q_.problem, q_.groups, changed.actions, alone);
      if (!changed.counts.empty()) Offer(std::move(changed));
    }
    if (at_.counts.empty()) return;
    const auto devices = static_cast<uint64_t>(q_.problem.devices());
    for (uint64_t attempt = 0; attempt < 2 * devices && !q_.timer.Spent(); ++attempt) {
      const size_t from = q_.rng.Below(devices), to = q_.rng.Below(devices);
      const int part = std::max(1, at_.counts[from] / (attempt % 2 == 0 ? 8 : 32));
      if (from == to || at_.counts[from] <= part) continue;
      GraphStrategy changed = at_;
      changed.counts[from] -= part;
      changed.counts[to] += part;
      Offer(std::move(changed));
    }
  }

  // All groups of one action take another one; of two that are used, groups may change places.
  void Exchanges() {
    constexpr int kTries = 3;
    const std::set<int> used(at_.actions.begin(), at_.actions.end());
    for (const int from : used) {
      for (int attempt = 0; attempt < kTries && !q_.timer.Spent(); ++attempt) {
        const int to = AnyAction(q_);
        const bool both = q_.rng.Below(2) == 0;
        GraphStrategy changed = at_;
        for (int& action : changed.actions) {
          if (action == from) {
            action = to;
          } else if (both && action == to) {
            action = from;
          }
        }
        Offer(std::move(changed));
      }
    }
  }

  // Runs around the groups with the most parameters move to one device of each pool. That saves the reduction of these
  // parameters, but where only a part of the groups that belong together moves, the messages between them cost more.
  void Heaviest() {
    constexpr size_t kHeaviest = 3, kLongest = 3;
    std::map<std::string, std::vector<int>> pools;
    for (int d = 0; d < q_.problem.devices(); ++d) {
      if (MayChoose(d)) pools[q_.problem.device(d).pool].push_back(d);
    }
    const std::vector<size_t> heaviest = ByParameters();
    for (size_t i = 0; i < std::min(kHeaviest, heaviest.size()); ++i) {
      for (size_t length = 1; length <= kLongest; ++length) {
        for (size_t before = 0; before < length; ++before) {
          if (before > heaviest[i] || heaviest[i] - before + length > at_.actions.size()) continue;
          for (const auto& [pool, devices] : pools) {
            if (q_.timer.Spent()) return;
            Offer(Changed(at_, {heaviest[i] - before, heaviest[i] - before + length},
                          devices[q_.rng.Below(devices.size())]));
          }
        }
      }
    }
  }

  // Divides the groups into runs of 1, 2, 4, ... and all groups, about twice as many as groups, and tries an action
  // for each, in any order.
  void Runs() {
    const size_t groups = at_.actions.size();
    std::vector<std::pair<size_t, size_t>> runs;
    for (size_t length = 1; length < 2 * groups; length *= 2) {
      const size_t shift = passes_ == 0 ? 0 : q_.rng.Below(length);  // where the first run ends earlier
      for (size_t end = length - shift; end < groups + length; end += length) {
        runs.emplace_back(end > length ? end - length : 0, std::min(end, groups));
      }
    }
    ++passes_;
    ShuffleAll(q_.rng, runs);
    for (const auto& run : runs) {
      if (q_.timer.Spent()) return;
      Offer(q_.rng.Below(3) == 0 ? OtherShares(run) : Changed(at_, run, DrawAction(run)));
    }
  }

  // Each group, in any order, by the other kind of shares.
  void Shares() {
    std::vector<size_t> order(at_.actions.size());
    std::iota(order.begin(), order.end(), size_t{0});
    ShuffleAll(q_.rng, order);
    for (const size_t g : order) {
      if (q_.timer.Spent()) return;
      Offer(OtherShares({g, g + 1}));
    }
  }

  // Even replicas of a run become proportional and the other way round, with the same reductions. Shares by whole
  // counts fit no GPU exactly, and parts of the model with the one and the other even that out.
  GraphStrategy OtherShares(std::pair<size_t, size_t> run) const {
    const auto of = [&](Replicas how) { return ActionOf(q_.problem, how); };
    const std::array<std::pair<int, int>, 2> kinds = {
        std::pair{of(Replicas::kEvenServer), of(Replicas::kProportionalServer)},
        std::pair{of(Replicas::kEvenAllreduce), of(Replicas::kProportionalAllreduce)}};
    GraphStrategy changed = at_;
    for (size_t g = run.first; g < run.second; ++g) {
      for (const auto& [even, proportional] : kinds) {
        if (at_.actions[g] == even && MayChoose(proportional)) changed.actions[g] = proportional;
        if (at_.actions[g] == proportional && MayChoose(even)) changed.actions[g] = even;
      }
    }
    return changed;
  }

  // That of a neighbour, one of the ways to replicate, or any.
  int DrawAction(std::pair<size_t, size_t> run) {
    const size_t beside = run.first > 0 ? run.first - 1 : std::min(run.second, at_.actions.size() - 1);
    const auto which = q_.rng.Below(4);
    if (which == 0) return at_.actions[beside];
    if (which == 1 && q_.actions.empty()) return q_.problem.devices() + static_cast<int>(q_.rng.Below(kReplicaActions));
    return AnyAction(q_);
  }

  bool MayChoose(int action) const {
    return q_.actions.empty() || std::ranges::find(q_.actions, action) != q_.actions.end();
  }

  // Groups with parameters, those with the most first.
  std::vector<size_t> ByParameters() const {
    std::vector<std::pair<double, size_t>> bytes;
    for (size_t g = 0; g < q_.groups.members.size(); ++g) {
      double sum = 0;
      for (const int i : q_.groups.members[g]) {
        sum += q_.problem.request().model.layers[static_cast<size_t>(i)].weight_bytes;
      }
      if (sum > 0) bytes.emplace_back(-sum, g);
    }
    std::ranges::sort(bytes);
    std::vector<size_t> groups;
    for (const auto& [sum, group] : bytes) groups.push_back(group);
    return groups;
  }

  void Schedules() {
    for (const int64_t bytes : BucketSizes(q_.problem)) {
      GraphStrategy changed = at_;
      changed.bucket_bytes = bytes;
      Offer(changed);
    }
    for (const OrderBy order : kOrders) {
      if (!q_.orders.empty() && std::ranges::find(q_.orders, order) == q_.orders.end()) continue;
      GraphStrategy changed = at_;
      changed.order = order;
      Offer(changed);
    }
  }

  const GraphQuestion& q_;
  const StrategyBound& bound_;
  GraphStrategy at_;
  double seconds_;
  int passes_ = 0;  // of Runs
};

}  // namespace

absl::StatusOr<std::optional<OverlappedStrategy>> OverlapBest(const GraphQuestion& q, double below,
                                                              const Budget& limits, Overlapping& overlapping) {
  std::vector<GraphStrategy> strategies = {q.timer.best()};
  for (int how = 0; how < kReplicaActions; ++how) {
    GraphStrategy uniform = Uniform(q, q.problem.devices() + how, 0, OrderBy::kModel);
    const bool proportional = how >= static_cast<int>(Replicas::kProportionalServer);
    if (proportional && !q.timer.best().counts.empty()) {
      uniform.counts = BalancedCounts(q.problem, q.groups, uniform.actions);
    }
    strategies.push_back(std::move(uniform));
  }
  std::optional<OverlappedStrategy> best;
  for (GraphStrategy& strategy : strategies) {
    if (limits.Spent()) break;
    MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, q.timer.Plan(strategy));
    MEDLEY_ASSIGN_OR_RETURN(auto found, overlapping.NextStep(plan, below));
    if (!found || (best && found->figures.seconds >= best->found.figures.seconds)) continue;
    strategy.bucket_bytes = found->plan.schedule.bucket_bytes;
    best = {std::move(strategy), *std::move(found)};
  }
  return best;
}

int AnyAction(const GraphQuestion& q) {
  if (!q.actions.empty()) return q.actions[q.rng.Below(q.actions.size())];
  return static_cast<int>(q.rng.Below(static_cast<uint64_t>(ActionCount(q.problem))));
}

std::pair<size_t, size_t> DrawRun(const GraphQuestion& q, size_t most) {
  const auto groups = static_cast<size_t>(q.groups.count());
  size_t length = 1;
  while (length < most && q.rng.Below(2) == 0) length *= 2;
  length = std::min({length, most, groups});
  const size_t first = q.rng.Below(groups - length + 1);
  return {first, first + length};
}

GraphStrategy Changed(GraphStrategy strategy, std::pair<size_t, size_t> run, int action) {
  std::fill(strategy.actions.begin() + static_cast<std::ptrdiff_t>(run.first),
            strategy.actions.begin() + static_cast<std::ptrdiff_t>(run.second), action);
  return strategy;
}

bool FindAny(const GraphQuestion& q) {
  const auto devices = static_cast<size_t>(q.problem.devices());
  std::vector<int> order(devices);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t draw = 0, end = 20 * q.timer.left(); draw < end && q.timer.best().actions.empty(); ++draw) {
    if (q.timer.Spent()) return false;
    ShuffleAll(q.rng, order);
    const auto groups = static_cast<size_t>(q.groups.count());
    GraphStrategy strategy = Uniform(q, 0, 0, OrderBy::kRank);
    for (size_t g = 0; g < groups; ++g) strategy.actions[g] = order[g * devices / groups];
    for (uint64_t change = q.rng.Below(4); change > 0; --change) {
      strategy = Changed(strategy, DrawRun(q, std::max<size_t>(1, groups / 4)), AnyAction(q));
    }
    q.timer.Seconds(strategy);
  }
  return !q.timer.best().actions.empty();
}

GraphStrategy Uniform(const GraphQuestion& q, int action, int64_t bucket_bytes, OrderBy order) {
  return {std::vector<int>(static_cast<size_t>(q.groups.count()), action), bucket_bytes, order};
}

void TryBaselines(const GraphQuestion& q) {
  for (int how = 0; how < kReplicaActions; ++how) {
    for (const int64_t bytes : BucketSizes(q.problem)) {
      for (const OrderBy order : {OrderBy::kReady, OrderBy::kRank}) {
        q.timer.Seconds(Uniform(q, q.problem.devices() + how, bytes, order));
      }
    }
  }
  std::set<std::string> pools;  // devices of one pool are equally fast
  for (int d = 0; d < q.problem.devices(); ++d) {
    if (pools.insert(q.problem.device(d).pool).second) q.timer.Seconds(Uniform(q, d, 0, OrderBy::kRank));
  }
}

void SearchGraph(const GraphQuestion& q) {
  if (!FindAny(q)) return;
  GraphStrategy start = q.timer.best();
  if (!q.balances) start.counts.clear();
  const StrategyBound bound(q.problem, q.groups);
  int known = 0;  // restarts in a row without a new simulation
  for (int restart = 0; !q.timer.Spent(); ++restart) {
    const int64_t before = q.timer.calls();
    Climber(q, bound, start).Climb();
    start = q.timer.best();
    if (!q.balances) start.counts.clear();
    const size_t groups = start.actions.size();
    constexpr int kFresh = 3;  // of which one begins somewhere else
    if (restart % kFresh == kFresh - 1) {
      start.counts.clear();
      for (size_t g = 0; g < groups; ++g) {
        const bool as_before = g > 0 && q.rng.Below(2) == 0;
        start.actions[g] = as_before ? start.actions[g - 1] : AnyAction(q);
      }
    } else {
      const auto kicks = 1 + q.rng.Below(4);
      for (uint64_t kick = 0; kick < kicks; ++kick) {
        start = Changed(start, DrawRun(q, std::max<size_t>(1, groups / 3)), AnyAction(q));
      }
    }
    constexpr int kRestartsWithoutNews = 200;  // of a tiny space that is known
    known = q.timer.calls() == before ? known + 1 : 0;
    if (known > kRestartsWithoutNews) return;
  }
}

}  // namespace medley::sched

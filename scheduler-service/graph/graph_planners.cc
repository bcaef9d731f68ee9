#include "scheduler-service/graph/graph_planners.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/graph/balance.h"
#include "scheduler-service/graph/bound.h"
#include "scheduler-service/graph/search.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/overlap.h"

namespace medley::sched {
namespace {

// One more strategy, compared with the plan.
void Compare(const GraphQuestion& q, std::string label, const GraphStrategy& strategy, Candidate& out) {
  const double seconds = q.timer.Seconds(strategy);
  const bool fits = seconds < kForever;
  out.alternatives.push_back({std::move(label), fits ? seconds : 0, fits ? "" : q.timer.WhyNot(strategy)});
}

// The best of a baseline's sizes of buckets, with one order. All were timed before.
void CompareBaseline(const GraphQuestion& q, int action, OrderBy order, Candidate& out) {
  GraphStrategy best;
  double least = kForever;
  for (const int64_t bytes : BucketSizes(q.problem)) {
    const GraphStrategy strategy = Uniform(q, action, bytes, order);
    const double seconds = q.timer.Seconds(strategy);
    if (seconds >= least && !best.actions.empty()) continue;
    least = seconds;
    best = strategy;
  }
  Compare(q, ActionName(q.problem, action) + (order == OrderBy::kRank ? ", by rank" : ""), best, out);
}

// The plan without one kind of its decisions.
void CompareDecisions(const GraphQuestion& q, const GraphStrategy& plan, Candidate& out) {
  const auto changed = [&](const std::string& label, const std::function<int(int)>& action) {
    GraphStrategy strategy = plan;
    for (int& each : strategy.actions) each = action(each);
    if (strategy.actions != plan.actions) Compare(q, label, strategy, out);
  };
  const auto is = [&](int action, Replicas how) { return action == ActionOf(q.problem, how); };
  for (const OrderBy order : kOrders) {
    if (order == plan.order) continue;
    GraphStrategy strategy = plan;
    strategy.order = order;
    Compare(q, "the plan " + OrderName(order), strategy, out);
  }
  changed("the plan with allreduce everywhere", [&](int action) {
    if (is(action, Replicas::kEvenServer)) return ActionOf(q.problem, Replicas::kEvenAllreduce);
    if (is(action, Replicas::kProportionalServer)) return ActionOf(q.problem, Replicas::kProportionalAllreduce);
    return action;
  });
  changed("the plan with equal shares", [&](int action) {
    if (is(action, Replicas::kProportionalServer)) return ActionOf(q.problem, Replicas::kEvenServer);
    if (is(action, Replicas::kProportionalAllreduce)) return ActionOf(q.problem, Replicas::kEvenAllreduce);
    return action;
  });
  if (!plan.counts.empty()) {
    GraphStrategy strategy = plan;
    strategy.counts.clear();
    Compare(q, "the plan with whole replicas", strategy, out);
  }
  std::map<int, int> used;
  for (const int action : plan.actions) {
    if (IsReplicated(q.problem, action)) ++used[action];
  }
  if (used.empty()) return;
  const auto most = std::ranges::max_element(used, {}, [](const auto& one) { return one.second; });
  changed("the plan with replicas of everything",
          [&](int action) { return IsReplicated(q.problem, action) ? action : most->first; });
}

// The balanced shares, by pool.
std::string Shares(const DeviceProblem& problem, const std::vector<int>& counts) {
  if (counts.empty()) return "";
  std::map<std::string, std::pair<int, int>> pools;  // the least and the most
  int all = 0;
  for (int d = 0; d < problem.devices(); ++d) {
    const int count = counts[static_cast<size_t>(d)];
    const auto [pool, added] = pools.try_emplace(problem.device(d).pool, count, count);
    pool->second = {std::min(pool->second.first, count), std::max(pool->second.second, count)};
    all += count;
  }
  std::string text = fmt::format("of every {} samples each replica in proportion takes", all);
  for (const auto& [name, range] : pools) {
    const auto& [least, most] = range;
    text +=
        fmt::format(" {} on {},", least == most ? fmt::to_string(least) : fmt::format("{} to {}", least, most), name);
  }
  text.back() = '\n';
  return text;
}

// Part of the operations by action, as in the paper's Table 2, and of the time of the model, a mean over all devices.
std::string Table(const GraphQuestion& q, const GraphStrategy& plan) {
  struct Part {
    int operations = 0;
    double seconds = 0;
  };
  std::map<int, Part> parts;
  double all = 0;
  for (int i = 0; i < q.problem.layers(); ++i) {
    Part& part = parts[plan.actions[static_cast<size_t>(q.groups.group_of[static_cast<size_t>(i)])]];
    double seconds = 0;  // of all devices
    for (int d = 0; d < q.problem.devices(); ++d) seconds += q.problem.WorkOf(i, i + 1, d).At(1);
    ++part.operations;
    part.seconds += seconds;
    all += seconds;
  }
  std::string text;
  for (const auto& [action, part] : parts) {
    text += fmt::format("{}: {:.1f} % of the operations, {:.1f} % of the time\n", ActionName(q.problem, action),
                        100.0 * part.operations / q.problem.layers(), all > 0 ? 100 * part.seconds / all : 0);
  }
  text += Shares(q.problem, plan.counts);
  text += plan.bucket_bytes > 0 ? fmt::format("gradients in buckets of {} bytes, ", plan.bucket_bytes)
                                : std::string("gradients of neighbouring operations together, ");
  return text + "operations " + OrderName(plan.order) + "\n";
}

// A line; empty for a plan that takes no time.
std::string WhatHoldsItUp(const ProgramBound& bound, double seconds) {
  if (bound.seconds() <= 0) return "";
  std::string text = fmt::format("the longest path takes {:.3g} s, the busiest device ({}) {:.3g} s", bound.path,
                                 bound.device, bound.compute);
  if (bound.link > 0) text += fmt::format(", the busiest link ({}) {:.3g} s", bound.link_name, bound.link);
  return text + fmt::format(": a step takes {:.3f} times the largest of them\n", seconds / bound.seconds());
}

class GraphPlanner final : public Planner {
 public:
  GraphPlanner(std::string_view name, std::string_view description, const GraphOptions& options, GraphSearch search,
               bool compares)
      : name_(name), description_(description), options_(options), search_(std::move(search)), compares_(compares) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  Takes takes() const override { return {.supply = Supply::kDevices, .graphs = true, .asynchronous = false}; }
  absl::StatusOr<Candidate> Search(const Question& question, Judge& judge, uint64_t seed,
                                   const Budget& limits) const override {
    const DeviceProblem& problem = question.devices();
    if (problem.asynchronous()) {
      return base::InvalidArgument("planner {} makes synchronous plans: planner.schedule must not be ASYNC_1F1B",
                                   name_);
    }
    if (problem.request().planner.sync.mode != model::SyncMode::kFull) {
      return base::InvalidArgument("planner {} makes plans whose replicas are equal: planner.sync.mode must be FULL",
                                   name_);
    }
    const OperationGroups groups = GroupOperations(problem, options_.groups);
    GraphTimer timer(judge, groups, limits, options_.calls);
    base::Rng rng(seed);
    const GraphQuestion q{problem, groups, timer, rng};
    MEDLEY_RETURN_IF_ERROR(search_(q));
    if (compares_) {
      timer.Allow(kMostBalanceSimulations);
      BalanceShares(q);
    }
    Candidate out;
    out.judged = timer.calls();
    out.complete = !limits.Spent();
    out.lower_bound = BoundOfGraph(problem).seconds();
    if (timer.best().actions.empty()) {
      out.notes.push_back("no plan of operations fits on these devices: " + timer.why());
      return out;
    }
    if (compares_) CompareAll(q, out);
    if (!timer.best().counts.empty()) {
      const double whole = timer.best_whole_seconds();
      const bool fits = whole < kForever;
      out.alternatives.push_back({"the best plan with whole replicas", fits ? whole : 0, fits ? "" : "none fits"});
    }
    MEDLEY_ASSIGN_OR_RETURN(out.plan, timer.Plan(timer.best()));
    out.figures = timer.best_figures();
    out.explanation = Table(q, timer.best());
    if (compares_) MEDLEY_RETURN_IF_ERROR(Overlap(q, limits, out));
    if (limits.Spent()) return out;
    const auto bound = DeviceSimulator(problem, limits.stop()).Bound(*out.plan);
    if (bound.ok()) {
      out.explanation += WhatHoldsItUp(*bound, out.figures.seconds);
    } else {  // the plan is good without it
      out.notes.push_back("what holds the plan up is not known: " + base::Message(bound.status()));
    }
    return out;
  }

 private:
  static absl::Status Overlap(const GraphQuestion& q, const Budget& limits, Candidate& out) {
    Overlapping overlapping(q.timer.judge(), limits);
    MEDLEY_ASSIGN_OR_RETURN(auto overlapped, OverlapBest(q, out.figures.seconds * kWorthOverlap, limits, overlapping));
    out.judged += overlapping.calls();
    if (!overlapped) return absl::OkStatus();
    out.alternatives.push_back(
        {"the best plan that ends its reductions before the next step", out.figures.seconds, ""});
    out.plan = std::move(overlapped->found.plan);
    out.figures = overlapped->found.figures;
    out.explanation = Table(q, overlapped->strategy) + "reductions go on during the next step's forward pass\n";
    limits.Report(*out.plan, out.figures);
    return absl::OkStatus();
  }

  // Again where a comparison was better than the plan.
  static void CompareAll(const GraphQuestion& q, Candidate& out) {
    constexpr int64_t kToCompare = 16;
    q.timer.Allow(kToCompare);
    GraphStrategy plan;
    while (plan != q.timer.best()) {
      plan = q.timer.best();
      out.alternatives.clear();
      for (int how = 0; how < kReplicaActions; ++how) {
        for (const OrderBy order : {OrderBy::kReady, OrderBy::kRank}) {
          CompareBaseline(q, q.problem.devices() + how, order, out);
        }
      }
      CompareDecisions(q, plan, out);
    }
  }

  const std::string_view name_, description_;
  const GraphOptions options_;
  const GraphSearch search_;
  const bool compares_;
};

}  // namespace

std::unique_ptr<Planner> MakeGraphPlanner(std::string_view name, std::string_view description,
                                          const GraphOptions& options, GraphSearch search, bool compares) {
  return std::make_unique<GraphPlanner>(name, description, options, std::move(search), compares);
}

std::unique_ptr<Planner> MakeGraph(const GraphOptions& options) {
  const GraphSearch search = [](const GraphQuestion& q) {
    GraphQuestion own = q;
    own.balances = true;
    TryBaselines(own);
    SearchGraph(own);
    return absl::OkStatus();
  };
  return MakeGraphPlanner(
      "graph", "devices, replicas, reductions and order of each group of operations, by local search (after HeteroG)",
      options, search, true);
}

}  // namespace medley::sched

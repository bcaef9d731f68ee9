#include "scheduler-service/simulate/list_schedule.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "common/base/rng.h"

namespace medley::sched {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr double kEqual = 1e-9;

double Seconds(const TaskGraph& graph, const TaskOrder& order) { return TimeTasks(graph, order).seconds; }

// Tasks of 1 to 10 s on three resources; each needs some of the few before it.
TaskGraph RandomGraph(base::Rng& rng, int tasks, bool delays) {
  TaskGraph graph{3, {}};
  for (int i = 0; i < tasks; ++i) {
    graph.tasks.push_back({static_cast<int>(rng.Below(3)), 1.0 + static_cast<double>(rng.Below(10)), {}});
    for (int before = std::max(0, i - 6); before < i; ++before) {
      if (rng.Below(4) != 0) continue;
      graph.tasks[static_cast<size_t>(before)].next.push_back({i, delays ? static_cast<double>(rng.Below(4)) : 0});
    }
  }
  return graph;
}

// Every task once, and none before one that it needs.
void ExpectValid(const TaskGraph& graph, const TaskOrder& order) {
  std::vector<int> position(graph.tasks.size(), -1);
  ASSERT_EQ(order.size(), graph.tasks.size());
  for (size_t i = 0; i < order.size(); ++i) position.at(static_cast<size_t>(order[i])) = static_cast<int>(i);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    ASSERT_GE(position[i], 0);
    for (const TaskGraph::Edge& edge : graph.tasks[i].next) {
      ASSERT_LT(position[i], position[static_cast<size_t>(edge.task)]);
    }
  }
}

// The seconds of the busiest resource: no order is shorter.
double MostLoad(const TaskGraph& graph) {
  std::vector<double> load(static_cast<size_t>(graph.resources), 0);
  for (const TaskGraph::Task& task : graph.tasks) load[static_cast<size_t>(task.resource)] += task.seconds;
  return std::ranges::max(load);
}

// Branch and bound over active schedules (Giffler and Thompson): some task of the resource on which a task can end
// first comes next there, one that can begin before that end.
class Optimum {
 public:
  explicit Optimum(const TaskGraph& graph) : graph_(graph), ranks_(UpwardRanks(graph)), needs_(graph.tasks.size(), 0) {
    for (const TaskGraph::Task& task : graph.tasks) {
      for (const TaskGraph::Edge& edge : task.next) ++needs_[static_cast<size_t>(edge.task)];
    }
  }
  // `known`: some feasible number of seconds.
  double Seconds(double known) {
    best_ = known;
    Branch({std::vector<double>(graph_.tasks.size(), 0), std::vector<double>(static_cast<size_t>(graph_.resources), 0),
            needs_, std::vector<bool>(graph_.tasks.size(), false), 0});
    return best_;
  }
  int64_t nodes() const { return nodes_; }

 private:
  struct State {
    std::vector<double> from;  // by task: what it needs has ended
    std::vector<double> free;  // by resource
    std::vector<int> missing;
    std::vector<bool> done;
    double end = 0;
  };

  void Branch(const State& state) {
    ++nodes_;
    int first = -1;
    double least = std::numeric_limits<double>::infinity(), bound = state.end;
    std::vector<double> load = state.free;
    const auto begin = [&](size_t i) {
      return std::max(state.from[i], state.free[static_cast<size_t>(graph_.tasks[i].resource)]);
    };
    for (size_t i = 0; i < graph_.tasks.size(); ++i) {
      if (state.done[i]) continue;
      load[static_cast<size_t>(graph_.tasks[i].resource)] += graph_.tasks[i].seconds;
      bound = std::max(bound, begin(i) + ranks_[i]);
      if (state.missing[i] > 0 || begin(i) + graph_.tasks[i].seconds >= least) continue;
      least = begin(i) + graph_.tasks[i].seconds;
      first = static_cast<int>(i);
    }
    bound = std::max(bound, std::ranges::max(load));
    if (bound >= best_ - kEqual) return;
    if (first < 0) {
      best_ = state.end;
      return;
    }
    for (size_t i = 0; i < graph_.tasks.size(); ++i) {
      if (state.done[i] || state.missing[i] > 0 || begin(i) >= least ||
          graph_.tasks[i].resource != graph_.tasks[static_cast<size_t>(first)].resource) {
        continue;
      }
      State next = state;
      const double end = begin(i) + graph_.tasks[i].seconds;
      next.done[i] = true;
      next.free[static_cast<size_t>(graph_.tasks[i].resource)] = end;
      next.end = std::max(next.end, end);
      for (const TaskGraph::Edge& edge : graph_.tasks[i].next) {
        const auto to = static_cast<size_t>(edge.task);
        --next.missing[to];
        next.from[to] = std::max(next.from[to], end + edge.delay);
      }
      Branch(next);
    }
  }

  const TaskGraph& graph_;
  const std::vector<double> ranks_;
  std::vector<int> needs_;
  double best_ = 0;
  int64_t nodes_ = 0;
};

// 0 and 1 are ready; 0 is short and 1 leads to the other resource. 2 becomes ready last.
TEST(ListScheduleTest, OrdersOfASmallGraph) {
  const TaskGraph graph{2, {{0, 1, {}}, {0, 2, {{3, 0.5}}}, {1, 4, {}}, {1, 5, {}}}};
  EXPECT_THAT(UpwardRanks(graph), ElementsAre(1, 7.5, 4, 5));
  EXPECT_THAT(OrderByRank(graph), ElementsAre(1, 3, 2, 0));
  EXPECT_THAT(OrderAsReady(graph), ElementsAre(0, 2, 1, 3));
  const TaskTimes by_rank = TimeTasks(graph, OrderByRank(graph));
  EXPECT_THAT(by_rank.start, ElementsAre(2, 0, 7.5, 2.5));  // the second resource waits for 3
  EXPECT_EQ(by_rank.seconds, 11.5);
  EXPECT_EQ(Seconds(graph, OrderAsReady(graph)), 9);
}

TEST(ListScheduleTest, NothingIsSimplyNothing) {
  EXPECT_THAT(OrderAsReady({}), ElementsAre());
  EXPECT_EQ(Seconds({}, RepairOrder({}, {}, 10)), 0);
}

// Theorem 1, and what its proof uses.
TEST(ListScheduleTest, RankIsWithinTheBoundOfTheorem1) {
  base::Rng rng(1);
  for (int instance = 0; instance < 300; ++instance) {
    const TaskGraph graph = RandomGraph(rng, 1 + static_cast<int>(rng.Below(60)), false);
    double all = 0;
    for (const TaskGraph::Task& task : graph.tasks) all += task.seconds;
    for (const TaskOrder& order : {OrderByRank(graph), OrderAsReady(graph)}) {
      ExpectValid(graph, order);
      ASSERT_LE(Seconds(graph, order), all + kEqual);
    }
    ASSERT_LE(all, graph.resources * MostLoad(graph) + kEqual);
  }
}

// The instance of Theorem 2 for `resources`: all but one chains, which pass the resources `k` times, and k single tasks
// on the last. In each round chain j is slow (1 s) on resource j and fast elsewhere. Tasks of equal rank are numbered
// so that the slow one comes first, and the next resource waits for it.
TaskGraph WorstInstance(int resources, int k, double fast) {
  TaskGraph graph{resources, {}};
  std::vector<int> last(static_cast<size_t>(resources - 1), -1);  // by chain
  for (int round = 0; round < k; ++round) {
    for (int on = 0; on < resources; ++on) {
      for (int turn = 0; turn < resources - 1; ++turn) {
        const int chain = (on + turn) % (resources - 1);
        const auto task = static_cast<int>(graph.tasks.size());
        int& before = last[static_cast<size_t>(chain)];
        if (before >= 0) graph.tasks[static_cast<size_t>(before)].next.push_back({task, 0});
        graph.tasks.push_back({on, chain == on ? 1 : fast, {}});
        before = task;
      }
    }
  }
  for (int i = 0; i < k; ++i) graph.tasks.push_back({resources - 1, 1, {}});
  return graph;
}

TEST(ListScheduleTest, TheInstanceOfTheorem2ReachesTheBoundAndRepairMendsIt) {
  constexpr int kResources = 6, kRounds = 200;
  constexpr double kFast = 1.0 / (1 << 17);  // sums are exact, so equal ranks are
  const TaskGraph graph = WorstInstance(kResources, kRounds, kFast);
  const double least = kRounds * (1 + (kResources - 1) * kFast) + (kResources - 2) * kFast;  // the paper's optimum
  ASSERT_LE(MostLoad(graph), least);
  const TaskOrder by_rank = OrderByRank(graph);
  EXPECT_GE(Seconds(graph, by_rank) / least, 0.95 * kResources);
  const TaskOrder repaired = RepairOrder(graph, by_rank, 10'000);
  ExpectValid(graph, repaired);
  std::printf("by rank %.3f times the optimum, repaired %.3f\n", Seconds(graph, by_rank) / least,
              Seconds(graph, repaired) / least);
  EXPECT_LE(Seconds(graph, repaired) / least, 2);
}

TEST(ListScheduleTest, RepairNeverLengthens) {
  base::Rng rng(2);
  int shorter = 0;
  for (int instance = 0; instance < 100; ++instance) {
    const TaskGraph graph = RandomGraph(rng, 40, true);
    const TaskOrder order = OrderAsReady(graph), repaired = RepairOrder(graph, order, 1000);
    ExpectValid(graph, repaired);
    ASSERT_LE(Seconds(graph, repaired), Seconds(graph, order));
    if (Seconds(graph, repaired) < Seconds(graph, order) - kEqual) ++shorter;
    ASSERT_EQ(Seconds(graph, RepairOrder(graph, order, 0)), Seconds(graph, order));
  }
  EXPECT_GE(shorter, 10);
}

// 200 graphs of at most 20 tasks against the best of all orders.
TEST(ListScheduleTest, RepairedOrdersAreNearTheOptimum) {
  base::Rng rng(3);
  std::vector<double> by_rank, as_ready, repaired;
  int64_t nodes = 0;
  for (int instance = 0; instance < 200; ++instance) {
    const TaskGraph graph = RandomGraph(rng, 8 + static_cast<int>(rng.Below(13)), true);
    const TaskOrder order = OrderByRank(graph);
    const double rank = Seconds(graph, order), ready = Seconds(graph, OrderAsReady(graph));
    const double mended = std::min(Seconds(graph, RepairOrder(graph, order, 1000)),
                                   Seconds(graph, RepairOrder(graph, OrderAsReady(graph), 1000)));
    Optimum optimum(graph);
    const double best = optimum.Seconds(std::min({rank, ready, mended}));
    nodes += optimum.nodes();
    by_rank.push_back(rank / best);
    as_ready.push_back(ready / best);
    repaired.push_back(mended / best);
  }
  const auto print = [](const char* name, std::vector<double>& ratios) {
    std::ranges::sort(ratios);
    std::printf("%s over the optimum: median %.3f, 95th percentile %.3f, worst %.3f\n", name, ratios[100], ratios[190],
                ratios[199]);
  };
  print("by rank", by_rank);
  print("as ready", as_ready);
  print("the better of both, repaired", repaired);
  std::printf("%lld nodes of branch and bound\n", static_cast<long long>(nodes));
  EXPECT_LE(by_rank[100], 1.15);
  EXPECT_LE(repaired[100], 1.02);
  EXPECT_LE(repaired[190], 1.10);
  EXPECT_GE(by_rank[0], 1 - kEqual);
}

}  // namespace
}  // namespace medley::sched

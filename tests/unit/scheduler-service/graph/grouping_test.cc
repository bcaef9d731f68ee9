#include "scheduler-service/graph/grouping.h"

#include <numeric>

#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::sched {
namespace {

// A chain whose operations take these seconds.
model::PlanRequest ChainOf(const std::vector<double>& seconds) {
  model::PlanRequest request = ClusterRequest({2}, {1}, static_cast<int>(seconds.size()));
  for (size_t i = 0; i < seconds.size(); ++i) request.model.layers[i].profiles[0].compute_seconds = seconds[i];
  return request;
}

TEST(GroupingTest, EveryOperationIsAGroupWhereTheyAreFew) {
  const OperationGroups groups = GroupOperations(ProblemOf(ChainOf({1, 2, 3})), 5);
  EXPECT_EQ(groups.group_of, (std::vector<int>{0, 1, 2}));
}

TEST(GroupingTest, OthersJoinTheNearestOfTheLongest) {
  const OperationGroups groups = GroupOperations(ProblemOf(ChainOf({1, 9, 1, 1, 1, 5, 1})), 2);
  // Operation 3 is two edges from both: it joins the longer one.
  EXPECT_EQ(groups.group_of, (std::vector<int>{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(groups.members[1], (std::vector<int>{4, 5, 6}));
}

TEST(GroupingTest, EqualOperationsAreChosenInOrder) {
  EXPECT_EQ(GroupOperations(ProblemOf(ChainOf({1, 1, 1, 1})), 2).group_of, (std::vector<int>{0, 1, 1, 1}));
}

TEST(GroupingTest, EdgesCountAndNotPositions) {
  model::PlanRequest request = ChainOf({9, 1, 1, 8});
  // Two branches: 0 -> 2, and 1 -> 3.
  request.model.layers[1].inputs = {-1};
  request.model.layers[2].inputs = {0};
  request.model.layers[3].inputs = {1};
  EXPECT_EQ(GroupOperations(ProblemOf(request), 2).group_of, (std::vector<int>{0, 1, 0, 1}));
}

TEST(GroupingTest, OperationsWithoutIncomingEdgesJoinTheOneBefore) {
  model::PlanRequest request = ChainOf({9, 1, 1});
  request.model.layers[1].inputs = {-1};
  request.model.layers[2].inputs = {1};
  EXPECT_EQ(GroupOperations(ProblemOf(request), 1).group_of, (std::vector<int>{0, 0, 0}));
}

TEST(GroupingTest, CoversAllOperationsOnceOfRandomGraphs) {
  base::Rng rng(17);
  for (int round = 0; round < 30; ++round) {
    const DeviceProblem problem = RandomGraphProblem(rng, 3, 2 + static_cast<int>(rng.Below(40)));
    const int most = 1 + static_cast<int>(rng.Below(12));
    const OperationGroups groups = GroupOperations(problem, most);
    EXPECT_EQ(groups.count(), std::min(most, problem.layers()));
    std::vector<int> seen(static_cast<size_t>(problem.layers()), 0);
    for (int g = 0; g < groups.count(); ++g) {
      EXPECT_FALSE(groups.members[static_cast<size_t>(g)].empty());
      for (const int i : groups.members[static_cast<size_t>(g)]) {
        EXPECT_EQ(groups.group_of[static_cast<size_t>(i)], g);
        ++seen[static_cast<size_t>(i)];
      }
    }
    EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), problem.layers());
  }
}

}  // namespace
}  // namespace medley::sched

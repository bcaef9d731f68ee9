#include "scheduler-service/hierarchy/arrange.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/program/compile.h"
#include "scheduler-service/devices/device_simulator.h"
#include "scheduler-service/simulate/from_profile.h"
#include "tests/unit/scheduler-service/devices/random_cluster.h"

namespace medley::sched {
namespace {

using base::IsOk;

std::vector<int> All(const DeviceProblem& problem) {
  std::vector<int> all(static_cast<size_t>(problem.devices()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The seconds of the program's reduction, as the simulator computes them.
double ReductionOf(const DeviceProblem& problem, const Arrangement& arrangement) {
  DataParallel how = WithShares(problem, arrangement);
  const auto program = program::Compile(BuildDataParallel(problem, how), problem.profile().model);
  EXPECT_THAT(program, IsOk());
  const DeviceLinks links{problem.links(), problem.index()};
  const auto durations = DurationsFromProfile(*program, problem.profile(), problem.samples(), links);
  EXPECT_THAT(durations, IsOk());
  return std::accumulate(durations->reductions.begin(), durations->reductions.end(), 0.0);
}

TEST(ArrangeTest, TheSimulatorAgreesOnTheSeconds) {
  base::Rng rng(21);
  for (int round = 0; round < 60; ++round) {
    const DeviceProblem problem =
        ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, 2 + static_cast<int>(rng.Below(40))), 0.4));
    const double bytes = problem.WeightBytes(0, problem.layers());
    for (const Formation formation : {Formation::kBest, Formation::kOneRing, Formation::kLinks, Formation::kPools,
                                      Formation::kEqualPower, Formation::kRandom}) {
      const Arrangement arrangement = Arrange(problem, All(problem), bytes, formation, rng);
      std::vector<int> order = arrangement.order;
      std::ranges::sort(order);
      EXPECT_EQ(order, All(problem));
      if (WithShares(problem, arrangement).devices.size() < order.size()) continue;  // some got no sample
      EXPECT_NEAR(ReductionOf(problem, arrangement), arrangement.seconds, 1e-9 * (1 + arrangement.seconds))
          << "round " << round << ", formation " << static_cast<int>(formation);
    }
  }
}

TEST(ArrangeTest, NothingIsFasterThanTheExactSearch) {
  base::Rng rng(22);
  int equal = 0;
  for (int round = 0; round < 60; ++round) {
    const DeviceProblem problem =
        ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, 2 + static_cast<int>(rng.Below(6))), 0.5));
    const double bytes = problem.WeightBytes(0, problem.layers());
    const double exact = ExactArrangement(problem, All(problem), bytes).seconds;
    const double found = Improved(problem, ArrangeBySearch(problem, All(problem), bytes), bytes).seconds;
    EXPECT_LE(exact, found * (1 + 1e-9)) << "round " << round;
    equal += found <= exact * 1.03 ? 1 : 0;
    for (int draw = 0; draw < 5; ++draw) {
      EXPECT_LE(exact, Arrange(problem, All(problem), bytes, Formation::kRandom, rng).seconds * (1 + 1e-9));
    }
    EXPECT_GE(exact, LeastReductionSeconds(problem, All(problem), bytes) * (1 - 1e-9));
  }
  EXPECT_GE(equal, 45);
}

TEST(ArrangeTest, NeverSlowerThanOneRing) {
  base::Rng rng(23);
  for (const int devices : {10, 33, 120}) {
    const DeviceProblem problem = ProblemOf(WithSlowLinks(rng, RandomClusterRequest(rng, devices), 0.3));
    const double bytes = problem.WeightBytes(0, problem.layers());
    EXPECT_LE(ArrangeBySearch(problem, All(problem), bytes).seconds, OneRing(problem, All(problem), bytes).seconds);
  }
}

// 64 devices in four zones: groups within zones, and three levels are executed by the runtime's program.
TEST(ArrangeTest, ThreeLevelsCompile) {
  model::PlanRequest request = ClusterRequest({64}, {1}, 2, 100, 4e9);
  for (int d = 0; d < 64; ++d) {
    request.cluster.devices[static_cast<size_t>(d)].location =
        "z" + std::to_string(d / 16) + "/r" + std::to_string(d / 4);
  }
  request.cluster.links = {{"*", "*", 1e-4, 1e7}};
  for (int z = 0; z < 4; ++z) {
    const std::string zone = "z" + std::to_string(z);
    request.cluster.links.push_back({zone, zone, 1e-4, 1e8});
    for (int r = 4 * z; r < 4 * z + 4; ++r) {
      const std::string rack = zone + "/r" + std::to_string(r);
      request.cluster.links.push_back({rack, rack, 1e-4, 1e9});
    }
  }
  const DeviceProblem problem = ProblemOf(request);
  const double bytes = problem.WeightBytes(0, problem.layers());
  const Arrangement best = ArrangeBySearch(problem, All(problem), bytes);
  ASSERT_EQ(best.levels.size(), 2u);
  EXPECT_EQ(best.levels[0].size(), 16u);
  EXPECT_EQ(best.levels[1].size(), 4u);
  EXPECT_NEAR(ReductionOf(problem, best), best.seconds, 1e-6);
}

}  // namespace
}  // namespace medley::sched

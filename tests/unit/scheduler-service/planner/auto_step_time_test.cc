// The planner `auto` of devices takes the better of all that apply.
#include "scheduler-service/planner/auto_on_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "common/base/testing/status_matchers.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/graph/graphs.h"

namespace medley::sched {
namespace {

TEST(AutoOnDevicesTest, NoPlannerOfTheServiceIsFasterWithAsManyJudgements) {
  const Registry registry = BuiltinPlanners();
  base::Rng rng(71);
  std::map<std::string, int> fastest;
  int from_graph = 0;
  constexpr int kQuestions = 5;
  for (int i = 0; i < kQuestions; ++i) {
    const DeviceProblem problem = RandomGraphProblem(rng, 2 + i % 3, 3 + static_cast<int>(rng.Below(5)));
    const auto own = registry.Find("auto", Supply::kDevices)->Solve(problem, 1, Unlimited());
    ASSERT_THAT(own, base::IsOk());
    ASSERT_TRUE(own->plan);
    from_graph += own->planner == "graph" ? 1 : 0;
    EXPECT_LE(own->lower_bound, own->figures.seconds * (1 + 1e-9));
    for (const Planner* planner : registry.Of(Supply::kDevices)) {
      if (planner->name() == "auto") continue;
      const auto other = planner->Solve(problem, 1, Unlimited());
      if (!other.ok() || !other->plan || other->judged > own->judged) continue;
      EXPECT_LE(own->figures.seconds, other->figures.seconds * (1 + 1e-6)) << i << ": " << planner->name();
      if (other->figures.seconds <= own->figures.seconds * (1 + 1e-6)) ++fastest[std::string(planner->name())];
    }
  }
  std::printf("%d questions, %d plans of auto are from graph\n", kQuestions, from_graph);
  EXPECT_GE(from_graph, 1);
  EXPECT_GE(fastest.size(), 2U);
}

}  // namespace
}  // namespace medley::sched

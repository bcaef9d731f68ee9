// Neighbouring stages of one type: the cuts inside runs of given types, and the planners and answers that have them.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/rng.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/plan_result.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"

namespace medley::sched {
namespace {

std::vector<int> SomeSchedule(const Problem& problem, base::Rng& rng) {
  std::vector<int> schedule;
  for (int layer = 0; layer < problem.layers(); ++layer) {
    const int other = static_cast<int>(rng.Below(static_cast<uint64_t>(problem.types())));
    const bool changes = layer == 0 || rng.Below(3) == 0;
    int type = changes ? other : schedule.back();
    while (!problem.Profiled(layer, type)) type = (type + 1) % problem.types();
    schedule.push_back(type);
  }
  return schedule;
}

// Provisions every way to cut the runs of `schedule`.
std::optional<Provisioned> BestOfAllCuts(const Problem& problem, const std::vector<int>& schedule) {
  std::optional<Provisioned> best;
  for (uint64_t mask = 0; mask < uint64_t{1} << (schedule.size() - 1); ++mask) {
    std::vector<StageChoice> stages = {{0, 0, schedule[0], 0}};
    for (size_t i = 1; i < schedule.size(); ++i) {
      const int layer = static_cast<int>(i);
      if (schedule[i] == schedule[i - 1] && (mask >> (i - 1) & 1) == 0) {
        stages.back().last = layer;
      } else {
        stages.push_back({layer, layer, schedule[i], 0});
      }
    }
    auto plan = ProvisionExact(problem, stages);
    if (plan && (!best || plan->score.cost < best->score.cost)) best = std::move(plan);
  }
  return best;
}

bool HasNeighbours(const std::vector<StageChoice>& stages) {
  return std::adjacent_find(stages.begin(), stages.end(), [](const StageChoice& a, const StageChoice& b) {
           return a.type == b.type;
         }) != stages.end();
}

class CutsTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  const Budget unlimited_{clock_, base::SteadyTime::max(), {}};
};

TEST_F(CutsTest, AreTheCheapestOfAll) {
  int feasible = 0, cut = 0, only_cut = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem =
        Problem::Compile(AdversarialRequest(seed, {.most_layers = 7, .boundaries = true, .links = seed % 2 == 0}))
            .value();
    base::Rng rng(seed);
    const std::vector<int> schedule = SomeSchedule(problem, rng);
    const auto truth = BestOfAllCuts(problem, schedule);
    const auto found = CheapestCuts(problem, schedule, unlimited_);
    ASSERT_EQ(found.has_value(), truth.has_value());
    if (!truth) continue;
    ++feasible;
    EXPECT_NEAR(found->score.cost, truth->score.cost, 1e-9 * truth->score.cost);
    for (const StageChoice& s : found->stages) {
      for (int layer = s.first; layer <= s.last; ++layer) EXPECT_EQ(s.type, schedule[static_cast<size_t>(layer)]);
    }
    cut += HasNeighbours(found->stages) ? 1 : 0;
    only_cut += ProvisionExact(problem, StagesOf(schedule)) ? 0 : 1;
  }
  std::printf("seeds 1..300: %d feasible, %d with cuts, %d only with cuts\n", feasible, cut, only_cut);
  EXPECT_GE(feasible, 50);
  EXPECT_GE(cut, 20);
  EXPECT_GE(only_cut, 3);
}

// A policy gives a type per layer; its runs are cut. The same holds for the other planners that evaluate schedules.
TEST_F(CutsTest, PlannersThatEvaluateSchedulesFindThem) {
  for (const std::string_view name : {"rl-lstm", "greedy"}) {
    SCOPED_TRACE(name);
    const Registry planners = BuiltinPlanners();
    const Planner* planner = planners.Find(name, Supply::kUnits);
    ASSERT_NE(planner, nullptr);
    int cut = 0;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      model::PlanRequest request = RandomRequest(seed, {});
      if (name == "rl-lstm") request.planner.options = {{"rounds", 3.}};
      const Problem problem = Problem::Compile(request).value();
      const auto solution = planner->Solve(problem, 1, unlimited_);
      ASSERT_THAT(solution, base::IsOk());
      if (solution->plan) cut += HasNeighbours(StagesOf(problem, *solution->plan).value()) ? 1 : 0;
    }
    EXPECT_GE(cut, 4);
  }
}

// The alternative of one type is the cheapest of all plans on that type.
TEST_F(CutsTest, AlternativesHaveThem) {
  const Registry planners = BuiltinPlanners();
  int cut = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const model::PlanRequest request = RandomRequest(seed, {.most_layers = 6});
    const auto result = MakePlan(request, {}, planners, clock_, {});
    ASSERT_THAT(result, base::IsOk());
    const Problem problem = Problem::Compile(request).value();
    for (int t = 0; t < problem.types(); ++t) {
      const model::Alternative& one = result->alternatives[static_cast<size_t>(t)];
      std::optional<Provisioned> truth;
      const std::vector<int> schedule(static_cast<size_t>(problem.layers()), t);
      bool profiled = true;
      for (int layer = 0; layer < problem.layers(); ++layer) profiled = profiled && problem.Profiled(layer, t);
      if (profiled) truth = BestOfAllCuts(problem, schedule);
      ASSERT_EQ(one.plan.has_value(), truth.has_value());
      EXPECT_EQ(one.reasons.empty(), truth.has_value());
      if (!truth) continue;
      EXPECT_NEAR(one.plan->cost_usd, truth->score.cost, 1e-9 * truth->score.cost);
      cut += truth->stages.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GE(cut, 5);
}

}  // namespace
}  // namespace medley::sched

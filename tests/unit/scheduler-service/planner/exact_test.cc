// The planner exact against the yardstick brute-force.
#include <gtest/gtest.h>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/planners.h"
#include "tests/unit/scheduler-service/planner/random_request.h"

namespace medley::sched {
namespace {

constexpr int kInstances = 300;

class ExactTest : public testing::Test {
 protected:
  Solution Solve(const Planner& planner, const Problem& problem) {
    auto solution = planner.Solve(problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(solution, base::IsOk());
    return *solution;
  }
  base::FakeClock clock_;
};

TEST_F(ExactTest, CostsWhatBruteForceCosts) {
  int feasible = 0, mixed = 0, with_servers = 0, at_a_limit = 0;
  for (uint64_t seed = 1; seed <= kInstances; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(RandomRequest(seed, {.most_layers = 1 + static_cast<int>(seed % 8)}));
    ASSERT_THAT(problem, base::IsOk());
    const Solution truth = Solve(*MakeBruteForce(), *problem);
    const Solution found = Solve(*MakeExact(), *problem);
    ASSERT_EQ(found.best.has_value(), truth.best.has_value());
    ASSERT_TRUE(found.complete);
    if (!truth.best) continue;
    ++feasible;
    ASSERT_NEAR(found.best->score.cost, truth.best->score.cost, 1e-9 * truth.best->score.cost);
    ASSERT_EQ(*found.lower_bound, found.best->score.cost) << "the certificate has no gap";
    const Evaluation evaluation = Evaluate(*problem, found.best->stages);
    ASSERT_TRUE(evaluation.violations.empty()) << evaluation.violations[0].message;
    mixed += found.best->stages.size() > 1 ? 1 : 0;
    with_servers += evaluation.plan.server_units > 0 ? 1 : 0;
    const std::vector<int> used = UnitsByType(*problem, found.best->stages, evaluation.plan.server_units);
    for (int t = 0; t < problem->types(); ++t) {
      if (used[static_cast<size_t>(t)] > 0 && used[static_cast<size_t>(t)] == problem->limit(t)) {
        ++at_a_limit;
        break;
      }
    }
  }
  std::printf("seeds 1..%d: %d feasible, %d with several stages, %d with servers, %d at a limit\n", kInstances,
              feasible, mixed, with_servers, at_a_limit);
  // The instances must be about something.
  EXPECT_GE(feasible, 100);
  EXPECT_GE(mixed, 30);
  EXPECT_GE(with_servers, 20);
  EXPECT_GE(at_a_limit, 20);
}

TEST_F(ExactTest, IsDeterministic) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto problem = Problem::Compile(RandomRequest(seed, {}));
    const Solution a = Solve(*MakeExact(), *problem), b = Solve(*MakeExact(), *problem);
    ASSERT_EQ(a.best.has_value(), b.best.has_value());
    if (a.best) {
      EXPECT_EQ(a.best->stages, b.best->stages);
    }
  }
}

TEST_F(ExactTest, ReturnsTheIncumbentAndAProvenGapWhenTimeIsUp) {
  int with_gap = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(RandomRequest(seed, {}));
    const Solution whole = Solve(*MakeExact(), *problem);
    std::stop_source stopped;
    stopped.request_stop();
    const auto cut = MakeExact()->Solve(*problem, 0, Budget(clock_, base::SteadyTime::max(), stopped.get_token()));
    ASSERT_THAT(cut, base::IsOk());
    if (!cut->best) continue;  // no single type is feasible
    ASSERT_TRUE(whole.best.has_value());
    EXPECT_LE(*cut->lower_bound, whole.best->score.cost);
    EXPECT_GE(cut->best->score.cost, whole.best->score.cost);
    with_gap += cut->complete ? 0 : 1;
  }
  EXPECT_GE(with_gap, 10);
}

// Every other planner is a feasible plan that is not cheaper.
TEST_F(ExactTest, NoPlannerIsCheaper) {
  for (uint64_t seed = 500; seed < 600; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(RandomRequest(seed, {.most_layers = 12, .most_limit = 200}));
    const Solution exact = Solve(*MakeExact(), *problem);
    const Registry registry = BuiltinPlanners();
    for (const auto& planner : registry.planners()) {
      if (planner->name() == "brute-force") continue;
      const auto solution = planner->Solve(*problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
      if (!solution.ok() || !solution->best) continue;  // no GPU, or infeasible for that baseline
      ASSERT_TRUE(exact.best.has_value()) << planner->name();
      EXPECT_GE(solution->best->score.cost, exact.best->score.cost * (1 - 1e-12)) << planner->name();
      EXPECT_TRUE(Evaluate(*problem, solution->best->stages).violations.empty()) << planner->name();
    }
  }
}

}  // namespace
}  // namespace medley::sched

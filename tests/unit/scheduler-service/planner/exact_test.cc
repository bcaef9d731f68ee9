// The planner exact is deterministic, returns its best plan at any time, and no other planner finds a cheaper plan.
// brute_force_test.cc tests that its result is the optimum.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/builtin.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planning/candidate.h"
#include "scheduler-service/planning/stages.h"
#include "tests/unit/scheduler-service/planner/adversarial_request.h"
#include "tests/unit/scheduler-service/planner/scale_request.h"

namespace medley::sched::exact_test {
namespace {

// Every call of the clock advances it by a millisecond.
class TickingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override { return base::SteadyTime(base::milliseconds(++ticks_)); }
  bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }

 private:
  mutable int64_t ticks_ = 0;
};

// Binding limits: they cause many labels, and the relaxed bound is far from the optimum.
model::PlanRequest HardRequest(uint64_t seed) {
  model::PlanRequest request =
      ScaleRequest(seed, {.layers = 14, .types = 5, .noise = 1, .cpu_limit = 60, .gpu_limit = 5, .lookup_every = 2});
  double& least = request.constraints.min_throughput;
  least = 0;
  double reached = OptimumOf(request)->score.throughput, beyond = 64 * reached;
  while (beyond > 1.01 * reached) {  // almost the highest throughput that the limits allow
    least = std::sqrt(reached * beyond);
    (OptimumOf(request) ? reached : beyond) = least;
  }
  least = 0.85 * reached;
  return request;
}

class ExactTest : public testing::Test {
 protected:
  Solution Solve(const StagePlanner& planner, const Problem& problem) {
    auto solution = planner.SolveStages(problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
    EXPECT_THAT(solution, base::IsOk());
    return *solution;
  }
  base::FakeClock clock_;
};

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

TEST_F(ExactTest, ReturnsTheBestPlanAndAProvenGapWhenTimeIsUp) {
  int with_gap = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(RandomRequest(seed, {}));
    const Solution whole = Solve(*MakeExact(), *problem);
    std::stop_source stopped;
    stopped.request_stop();
    const auto cut =
        MakeExact()->SolveStages(*problem, 0, Budget(clock_, base::SteadyTime::max(), stopped.get_token()));
    ASSERT_THAT(cut, base::IsOk());
    if (!cut->best) continue;  // no single type is feasible
    ASSERT_TRUE(whole.best.has_value());
    EXPECT_LE(*cut->lower_bound, whole.best->score.cost);
    EXPECT_GE(cut->best->score.cost, whole.best->score.cost);
    with_gap += cut->complete ? 0 : 1;
  }
  EXPECT_GE(with_gap, 10);
}

TEST_F(ExactTest, ProvesMoreTheLongerItMaySearch) {
  int with_gap = 0, without_plan = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto problem = Problem::Compile(HardRequest(seed));
    ASSERT_THAT(problem, base::IsOk());
    const Solution whole = Solve(*MakeExact(), *problem);
    ASSERT_TRUE(whole.best.has_value());
    const double optimum = whole.best->score.cost;
    double least_cost = std::numeric_limits<double>::infinity(), highest_bound = 0;
    bool complete = false;
    for (int64_t budget = 1; !complete; budget += 1 + budget / 4) {
      ASSERT_LT(budget, 100'000) << "does not end";
      TickingClock clock;
      const Budget ticks(clock, base::SteadyTime(base::milliseconds(budget)), {});
      const auto cut = MakeExact()->SolveStages(*problem, 0, ticks);
      ASSERT_THAT(cut, base::IsOk());
      complete = cut->complete;
      if (!cut->best) {
        ++without_plan;
        ASSERT_EQ(least_cost, std::numeric_limits<double>::infinity()) << "a plan was lost";
        continue;
      }
      EXPECT_TRUE(Evaluate(*problem, cut->best->stages).violations.empty());
      EXPECT_LE(*cut->lower_bound, optimum * (1 + 1e-12));
      EXPECT_GE(cut->best->score.cost, optimum * (1 - 1e-12));
      EXPECT_LE(cut->best->score.cost, least_cost * (1 + kSameCost));
      EXPECT_GE(*cut->lower_bound, highest_bound * (1 - kSameCost));
      with_gap += *cut->lower_bound < cut->best->score.cost ? 1 : 0;
      least_cost = cut->best->score.cost;
      highest_bound = *cut->lower_bound;
    }
    EXPECT_NEAR(highest_bound, optimum, 1e-9 * optimum);
  }
  EXPECT_GE(with_gap, 24);
  EXPECT_LE(without_plan, 24) << "the first plan comes late";
}

// The plans of all other planners are feasible and not cheaper.
TEST_F(ExactTest, NoPlannerIsCheaper) {
  for (uint64_t seed = 500; seed < 600; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    model::PlanRequest request = RandomRequest(seed, {.most_layers = 12, .most_limit = 200});
    const auto plain = Problem::Compile(request);
    const Solution exact = Solve(*MakeExact(), *plain);
    const Registry registry = BuiltinPlanners();
    for (const Planner* planner : registry.Of(Supply::kUnits)) {
      if (planner->name() == "brute-force") continue;
      // This test does not need good plans of those that search.
      request.planner.options.clear();
      for (const Option& option : planner->options()) {
        for (const char* effort : {"rounds", "generations", "evaluations"}) {
          if (option.name == effort) request.planner.options[effort] = 3.;
        }
      }
      const auto problem = Problem::Compile(request);
      const auto found = planner->Solve(*problem, 0, Budget(clock_, base::SteadyTime::max(), {}));
      if (!found.ok() || !found->plan) continue;  // no GPU, or infeasible for that baseline
      ASSERT_TRUE(exact.best.has_value()) << planner->name();
      EXPECT_GE(found->figures.usd, exact.best->score.cost * (1 - 1e-12)) << planner->name();
      EXPECT_TRUE(Evaluate(*problem, StagesOf(*problem, *found->plan).value()).violations.empty()) << planner->name();
    }
  }
}

}  // namespace
}  // namespace medley::sched::exact_test

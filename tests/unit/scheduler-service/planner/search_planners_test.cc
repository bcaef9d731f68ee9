// The planner that searches by a policy, and planner auto, which falls back on it.
#include "common/model/plan_result.h"
#include "scheduler-service/planner/builtin.h"
#include "tests/unit/scheduler-service/planner/search_properties.h"

namespace medley::sched {
namespace {

INSTANTIATE_TEST_SUITE_P(Planners, SearchPlannersTest,
                         testing::Values(SearchCase{"rl-lstm", MakeRlLstm, kQuickRecurrent, kQuickerRecurrent,
                                                    "rounds"}),
                         SearchCaseName);

// Every call of the clock advances it by a millisecond.
class TickingClock final : public base::Clock {
 public:
  base::WallTime Now() const override { return {}; }
  base::SteadyTime Steady() const override { return base::SteadyTime(base::milliseconds(++ticks_)); }
  bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }

 private:
  mutable int64_t ticks_ = 0;
};

class RecurrentTest : public testing::Test {
 protected:
  absl::StatusOr<model::PlanResult> Plan(const model::PlanRequest& request) {
    return MakePlan(request, {}, registry_, clock_, {});
  }
  // A policy trained for `types` types.
  std::string Trained(int types) {
    model::PlanRequest request = Quick(Large(8, types));
    request.planner.name = "rl-lstm";
    request.planner.policy.return_policy = true;
    auto result = Plan(request);
    EXPECT_THAT(result, base::IsOk());
    return result->policy;
  }
  void ExpectRefused(const model::PlanRequest& request, const std::string& why) {
    const auto result = Plan(request);
    ASSERT_THAT(result, base::StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_NE(std::string(result.status().message()).find(why), std::string::npos) << result.status().message();
  }
  base::FakeClock clock_;
  const Registry registry_ = BuiltinPlanners();
};

TEST_F(RecurrentTest, APolicyWorksForSimilarModelsAndFewerTypes) {
  const std::string policy = Trained(3);
  for (const auto& [layers, types] : {std::pair{8, 3}, {13, 3}, {8, 2}, {100, 1}}) {
    model::PlanRequest request = Large(layers, types);
    request.planner.name = "rl-lstm";
    request.planner.policy.trained = policy;
    request.planner.policy.inference_only = true;
    const auto result = Plan(request);
    ASSERT_THAT(result, base::IsOk());
    EXPECT_TRUE(result->plan.has_value());
    request.planner.policy.inference_only = false;
    request.planner.options = {{"rounds", 5.}};
    request.planner.policy.return_policy = true;
    const auto tuned = Plan(request);
    ASSERT_THAT(tuned, base::IsOk());
    EXPECT_NE(tuned->policy, policy);
  }
}

TEST_F(RecurrentTest, ErrorsExplainWhyAPolicyDoesNotFit) {
  model::PlanRequest request = Large(8, 3);
  request.planner.name = "rl-lstm";
  request.planner.policy.trained = Trained(2);
  ExpectRefused(request, "trained for the types t0, t1, but resources[2] is 't2'");
  request.planner.policy.trained = "nonsense";
  ExpectRefused(request, "not a policy");
  request.planner.policy.trained.clear();
  request.planner.policy.inference_only = true;
  ExpectRefused(request, "also needs planner.policy.trained");
  request.planner.policy.inference_only = false;
  request.planner.policy.name = "mine";
  ExpectRefused(request, "only the scheduling service knows policies by name");
}

TEST_F(RecurrentTest, AutoProvesOptimalityAndNamesThePlanner) {
  model::PlanRequest request = Quick(Large(8, 2));
  request.planner.name = "auto";
  const auto result = Plan(request);
  ASSERT_THAT(result, base::IsOk());
  EXPECT_EQ(result->planner, "exact");
  EXPECT_EQ(*result->gap, 0);
}

TEST_F(RecurrentTest, AutoAnswersWithAPlanAndABoundWhenTheProofTakesTooLong) {
  int undecided = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    model::PlanRequest request = Quick(RandomRequest(seed, {.most_layers = 16, .most_types = 6, .most_limit = 64}));
    const auto problem = Problem::Compile(request);
    const TickingClock clock;
    const auto truth = MakeExact()->SolveStages(*problem, 1, Budget(clock_, base::SteadyTime::max(), {}));
    const auto found =
        MakeAuto()->SolveStages(*problem, 1, Budget(clock, clock.Steady() + base::milliseconds(4 + seed % 40), {}));
    ASSERT_THAT(found, base::IsOk());
    if (found->complete || !found->best) continue;
    ++undecided;
    ASSERT_TRUE(found->lower_bound.has_value()) << "seed " << seed;
    EXPECT_LE(*found->lower_bound, truth->best->score.cost * (1 + 1e-9)) << "seed " << seed;
    EXPECT_GE(found->best->score.cost, truth->best->score.cost * (1 - 1e-9)) << "seed " << seed;
    EXPECT_TRUE(Evaluate(*problem, found->best->stages).violations.empty());
  }
  std::printf("seeds 1..120: %d undecided\n", undecided);
  EXPECT_GE(undecided, 3);
}

// The time in which exact must find a plan is over at once, so where no single type has one, nothing is found in it.
TEST_F(RecurrentTest, AutoAsksRlLstmWhereExactFindsNoPlanInItsTime) {
  class LateClock final : public base::Clock {
   public:
    base::WallTime Now() const override { return {}; }
    base::SteadyTime Steady() const override {
      return base::SteadyTime(base::milliseconds(calls_++ == 0 ? 0 : 800 + calls_ / 8));
    }
    bool SleepUntil(base::SteadyTime, std::stop_token) override { return true; }

   private:
    mutable int64_t calls_ = 0;
  };
  int learned = 0, without = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    model::PlanRequest request = Quick(RandomRequest(seed, {.most_layers = 16, .most_types = 6, .most_limit = 64}));
    const auto problem = Problem::Compile(request);
    const LateClock clock;
    const auto found =
        MakeAuto()->SolveStages(*problem, 1, Budget(clock, base::SteadyTime(base::milliseconds(1000)), {}));
    ASSERT_THAT(found, base::IsOk());
    without += found->best ? 0 : 1;
    if (found->planner != "rl-lstm") continue;
    ++learned;
    EXPECT_FALSE(found->complete) << "seed " << seed;
    EXPECT_TRUE(Evaluate(*problem, found->best->stages).violations.empty()) << "seed " << seed;
    for (int t = 0; t < problem->types(); ++t) EXPECT_FALSE(SingleType(*problem, t).has_value()) << "seed " << seed;
  }
  std::printf("seeds 1..120: %d by rl-lstm, %d without a plan\n", learned, without);
  EXPECT_GE(learned, 3);
}

}  // namespace
}  // namespace medley::sched

// The planner that searches by a policy, and planner auto, which falls back on it.
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

TEST_F(RecurrentTest, AutoFallsBackWhenTheProofTakesTooLong) {
  int undecided = 0, learned = 0;
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
    learned += found->planner == "rl-lstm" ? 1 : 0;
    ASSERT_TRUE(found->lower_bound.has_value()) << "seed " << seed;
    EXPECT_LE(*found->lower_bound, truth->best->score.cost * (1 + 1e-9)) << "seed " << seed;
    EXPECT_GE(found->best->score.cost, truth->best->score.cost * (1 - 1e-9)) << "seed " << seed;
    EXPECT_TRUE(Evaluate(*problem, found->best->stages).violations.empty());
  }
  std::printf("seeds 1..120: %d undecided, %d by rl-lstm\n", undecided, learned);
  EXPECT_GE(undecided, 3);
  EXPECT_GE(learned, 1);
}

}  // namespace
}  // namespace medley::sched

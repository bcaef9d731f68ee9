#include "reproductions/heterog/agent.h"

#include "scheduler-service/planning/candidate.h"
#include "tests/unit/scheduler-service/graph/graphs.h"
#include "tests/unit/scheduler-service/planning/judge_of.h"

namespace medley::reproductions::heterog {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

const sched::Planner& GraphAgent() {
  static const auto planners = MakeGraphAgentPlanners();
  return *planners.front();
}

// What it draws gets better.
TEST(GraphAgentTest, DrawsBetterStrategiesAfterLearning) {
  for (uint64_t seed = 51; seed < 54; ++seed) {
    base::Rng rng(seed);
    const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 3, 8);
    const sched::OperationGroups groups = sched::GroupOperations(problem, 5);
    const sched::Budget limits = sched::Unlimited();
    const sched::JudgeOf judge(problem);
    sched::GraphTimer timer(*judge, groups, limits, 2000);
    base::Rng own(1);
    const sched::GraphQuestion q{problem, groups, timer, own};
    sched::TryBaselines(q);
    AgentSettings settings;
    settings.units = 32;
    settings.learning_rate = 5e-3;
    AgentPolicy policy(settings, 1);
    AgentLearner learner(policy, q, 10);
    const double first = learner.Round().mean_reward;
    policy.Step();
    double last = first;
    for (int round = 0; round < 80; ++round) {
      last = learner.Round().mean_reward;
      policy.Step();
    }
    EXPECT_GT(last, first) << "seed " << seed;
  }
}

TEST(GraphAgentTest, IsNoWorseThanTheBaselinesAndTheSameForOneSeed) {
  base::Rng rng(61);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 4, 10);
  const auto one = GraphAgent().Solve(problem, 3, sched::Unlimited()),
             other = GraphAgent().Solve(problem, 3, sched::Unlimited());
  ASSERT_THAT(one, IsOk());
  ASSERT_TRUE(one->plan);
  EXPECT_EQ(*one->plan, *other->plan);
  for (const auto& alternative : one->alternatives) {
    if (!alternative.failure.empty()) continue;
    EXPECT_LE(one->figures.seconds, alternative.seconds * (1 + 1e-9)) << alternative.label;
  }
}

TEST(GraphAgentTest, TheShippedWeightsAreThoseOfThisProgram) {
  AgentPolicy policy({}, 1);
  EXPECT_THAT(policy.Load(ShippedAgentWeights()), IsOk());
  EXPECT_LT(ShippedAgentWeights().size(), 20'000'000u);
}

TEST(GraphAgentTest, WeightsOfAnotherVersionEndThePlanning) {
  base::Rng rng(62);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 2, 4);
  const sched::OperationGroups groups = sched::GroupOperations(problem, 4);
  const sched::Budget limits = sched::Unlimited();
  const sched::JudgeOf judge(problem);
  sched::GraphTimer timer(*judge, groups, limits, 100);
  const sched::GraphQuestion q{problem, groups, timer, rng};
  EXPECT_THAT(SearchGraphByAgent(q, 1, {.settings = {}, .weights = "anything"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are no weights")));
}

TEST(GraphAgentTest, NothingFits) {
  base::Rng rng(63);
  model::PlanRequest request = sched::RandomGraphProblem(rng, 3, 6).request();
  for (model::Resource& resource : request.resources) resource.memory_bytes = 1;
  const auto solution = GraphAgent().Solve(sched::ProblemOf(std::move(request)), 1, sched::Unlimited());
  ASSERT_THAT(solution, IsOk());
  EXPECT_FALSE(solution->plan);
  EXPECT_THAT(solution->notes.back(), HasSubstr("no plan of operations fits"));
}

TEST(GraphAgentTest, TheTimeRunsOut) {
  base::Rng rng(64);
  const sched::DeviceProblem problem = sched::RandomGraphProblem(rng, 4, 30);
  static const base::SystemClock clock;
  std::stop_source stop;
  stop.request_stop();
  const auto solution = GraphAgent().Solve(problem, 1, {clock, base::SteadyTime::max(), stop.get_token()});
  ASSERT_THAT(solution, IsOk());
  EXPECT_FALSE(solution->complete);
}

}  // namespace
}  // namespace medley::reproductions::heterog

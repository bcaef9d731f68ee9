#include "reproductions/heterps/heterps_planners.h"

#include "tests/unit/scheduler-service/planner/large_questions.h"
#include "tests/unit/scheduler-service/planner/search_properties.h"

namespace medley::reproductions::heterps {
namespace {

using sched::Budget;
using sched::ExpectAutoIsNotWorse;
using sched::kQuickerRecurrent;
using sched::kQuickRecurrent;
using sched::Large;
using sched::MakeAuto;
using sched::MakeRlLstm;
using sched::Problem;
using sched::Quick;
using sched::Registry;
using sched::SearchCase;
using sched::SearchCaseName;
using sched::SearchPlannersTest;

using reproductions::heterps::MakeBayesian;
using reproductions::heterps::MakeGenetic;
using reproductions::heterps::MakeRlRnn;

INSTANTIATE_TEST_SUITE_P(Planners, SearchPlannersTest,
                         testing::Values(SearchCase{"rl-rnn", MakeRlRnn, kQuickRecurrent, kQuickerRecurrent, "rounds"},
                                         SearchCase{"genetic",
                                                    MakeGenetic,
                                                    {{"population", 30.}, {"generations", 20.}},
                                                    {{"population", 6.}, {"generations", 2.}},
                                                    "population"},
                                         SearchCase{"bayesian",
                                                    MakeBayesian,
                                                    {{"evaluations", 60.}, {"initialSamples", 20.}},
                                                    {{"evaluations", 6.}, {"initialSamples", 4.}},
                                                    "evaluations"}),
                         SearchCaseName);

// Large questions, where `auto` proves nothing.
TEST(HeterpsPlannersTest, NoneIsBetterThanAutoInTheSameProcessorTime) {
  Registry registry;
  registry.Add(MakeAuto());
  for (auto& planner : reproductions::heterps::MakeHeterpsPlanners()) registry.Add(std::move(planner));
  ExpectAutoIsNotWorse(registry);
}

TEST(HeterpsPlannersTest, APolicyOfAnotherNetworkIsRefused) {
  const base::FakeClock clock;
  const Budget budget(clock, base::SteadyTime::max(), {});
  model::PlanRequest request = Quick(Large(4, 2));
  request.planner.policy.return_policy = true;
  const auto trained = MakeRlLstm()->SolveStages(*Problem::Compile(request), 1, budget);
  ASSERT_THAT(trained, base::IsOk());
  request.planner.policy.trained = trained->policy;
  EXPECT_THAT(MakeRlRnn()->SolveStages(*Problem::Compile(request), 1, budget),
              base::StatusIs(absl::StatusCode::kInvalidArgument,
                             testing::HasSubstr("it is an LSTM network, planner rl-rnn has an Elman network")));
}

TEST(HeterpsPlannersTest, OptionsThatDoNotGoTogetherAreNamed) {
  const base::FakeClock clock;
  const Budget budget(clock, base::SteadyTime::max(), {});
  model::PlanRequest request = Large(4, 2);
  request.planner.options = {{"evaluations", 5.}, {"initialSamples", 6.}};
  EXPECT_THAT(MakeBayesian()->SolveStages(*Problem::Compile(request), 1, budget),
              base::StatusIs(absl::StatusCode::kInvalidArgument,
                             "planner.options.initialSamples: must be at most evaluations (5), is 6"));
}

}  // namespace
}  // namespace medley::reproductions::heterps

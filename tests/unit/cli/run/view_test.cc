#include "cli/run/view.h"

#include <gmock/gmock.h>

namespace medley::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;

Snapshot Example() {
  Snapshot view;
  view.phase = "Running";
  view.plan =
      ops::PlanStatus{.generation = 2,
                      .planner = "exact",
                      .summary = "emb@1xold | fc@2xnew",
                      .stages = {{"0-0", "old", 1, 9000}, {"1-5", "new", 2, 7000}},
                      .servers = 1,
                      .server_pool = "old",
                      .usd_per_hour = 0.11,
                      .throughput = 7000,
                      .usd_total = 0.0005,
                      .alternatives = {{"old only", 2000, 0.04, 0.001, ""}, {"gpu only", 0, 0, 0, "needs 3, limit 2"}}};
  view.pools = {{"old", 0.01, 2, 3}};
  view.observed.samples = 36352;
  view.observed.samples_total = 97683;
  view.progress_percent = 37.2;
  view.observed.throughput = 5311.7;
  view.observed.loss = 0.33119;
  view.cost.spent_usd = 0.00042;
  return view;
}

TEST(ViewTest, PlanTableHasStagesServersAndAlternatives) {
  const auto lines = PlanTable(*Example().plan);
  EXPECT_THAT(lines, Contains(HasSubstr("7,000 samples/s expected, 0.11 USD/h")));
  EXPECT_THAT(lines, Contains(testing::AllOf(HasSubstr("1-5"), HasSubstr("new"), HasSubstr("2"))));
  EXPECT_THAT(lines, Contains(HasSubstr("servers")));
  EXPECT_THAT(lines, Contains(HasSubstr("(+100 %)")));
  EXPECT_THAT(lines, Contains(HasSubstr("not possible: needs 3, limit 2")));
}

TEST(ViewTest, PlanTableSaysThatTrainersKeepTheRows) {
  ops::PlanStatus plan = *Example().plan;
  plan.servers = 0;
  plan.trainers_with_rows = 3;
  const auto lines = PlanTable(plan);
  EXPECT_THAT(lines, Contains(testing::AllOf(HasSubstr("rows"), HasSubstr("(in the trainers)"), HasSubstr("3"))));
  EXPECT_THAT(lines, testing::Not(Contains(HasSubstr("servers"))));
}

TEST(ViewTest, AlternativesOfTheFastestPlanHaveNoPrice) {
  ops::PlanStatus plan = *Example().plan;
  for (ops::PlanStatus::Alternative& other : plan.alternatives) other.reason = "limit";
  EXPECT_THAT(PlanTable(plan), Contains(HasSubstr("for comparison, on a single pool:"))) << "none is possible";
  plan.alternatives = {{"one device: gpu/0", 4200, 0, 0, ""}, {"all devices", 0, 0, 0, "memory"}};
  const auto lines = PlanTable(plan);
  EXPECT_THAT(lines, Contains("  for comparison:"));
  EXPECT_THAT(lines, Contains(testing::AllOf(HasSubstr("gpu/0"), HasSubstr("4,200 samples/s"),
                                             testing::Not(HasSubstr("USD")))));
}

TEST(ViewTest, ProgressLine) {
  EXPECT_EQ(ProgressLine(Example()), "  37 %  36,352 of 97,683 samples  5,312 samples/s  loss 0.3312  0.00042 USD");
}

TEST(ViewTest, ShowsTheLearningCurve) {
  Snapshot view = Example();
  EXPECT_TRUE(CurveTable(view.observed.evaluations, 6).empty());
  for (int epoch = 1; epoch <= 9; ++epoch) {
    view.observed.evaluations.push_back(
        {64 * epoch, epoch, 0.5 / epoch, {{"auc", 0.8 + 0.01 * epoch}, {"test_samples", 16281}}, ""});
  }
  view.observed.evaluations.back().loss.reset();
  EXPECT_EQ(CurveLine(view.observed.evaluations[0]), "epoch 1, step 64: auc 0.8100; training loss 0.5000");
  EXPECT_EQ(CurveLine(view.observed.evaluations[8]), "epoch 9, step 576: auc 0.8900");
  const auto table = CurveTable(view.observed.evaluations, 2);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_THAT(table[0], testing::AllOf(HasSubstr("epoch"), HasSubstr("training loss"), HasSubstr("auc"),
                                       testing::Not(HasSubstr("test_samples"))));
  EXPECT_THAT(table[1], testing::AllOf(HasSubstr("512"), HasSubstr("0.0625"), HasSubstr("0.8800")));
  EXPECT_THAT(table[2], testing::AllOf(HasSubstr("576"), HasSubstr("-"), HasSubstr("0.8900")));
  EXPECT_THAT(Frame(view, {}, 12, 100), testing::IsSupersetOf(CurveTable(view.observed.evaluations, 6)));
}

TEST(ViewTest, FramesFitTheWidthAndReplaceOneAnother) {
  const auto frame = Frame(Example(), {"a", "b"}, 12, 40);
  for (const std::string& line : frame) EXPECT_LE(line.size(), 40u);
  Screen screen;
  const std::string first = screen.Replace(frame);
  EXPECT_EQ(first.find("\x1b[2K"), 0u) << "the first frame replaces nothing";
  const std::string second = screen.Replace(frame);
  EXPECT_THAT(second, HasSubstr("\x1b[" + std::to_string(frame.size()) + "A"));
}

TEST(ViewTest, ThousandsRoundAndGroup) {
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999.6), "1,000");
  EXPECT_EQ(Thousands(1234567), "1,234,567");
  EXPECT_EQ(Thousands(-1234), "-1,234");
}

}  // namespace
}  // namespace medley::cli

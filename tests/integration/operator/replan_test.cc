// Replanning: what starts it, the decision, which is published either way, and make before break.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "operator/api/resources.h"
#include "tests/integration/operator/harness.h"

namespace medley::ops {
namespace {

using testing::Contains;

class ReplanTest : public OperatorHarness {
 protected:
  void SetUp() override {
    OperatorHarness::SetUp();
    capacity_debounce_ = std::chrono::hours(1);  // units that the profilers leave are no reason to move here
    StartOperator();
    RunJob();
  }
};

INSTANTIATE_TEST_SUITE_P(On, ReplanTest, testing::ValuesIn(kube::ServersUnderTest()), kube::ServerName);

TEST_P(ReplanTest, APriceThatMovesMovesTheJobMakeBeforeBreak) {
  coordinator_.SetAutoCommit(false);
  scheduler_.Publish(20);
  ASSERT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "the new plan is applied"));
  EXPECT_EQ(coordinator_.applied().back(), (std::pair<int64_t, std::string>{2, "PriceChanged"}));
  ASSERT_TRUE(Eventually([&] { return PodNames().contains("adult-0-cpu-3"); }, "new pods"));
  ASSERT_TRUE(WaitForCondition("Rescaling", "True", "PriceChanged"));
  // Old pods stay, and train, until the new generation is in force.
  Settle();
  EXPECT_THAT(PodNames(), Contains("adult-1-gpu-0"));
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  coordinator_.Commit();
  EXPECT_TRUE(Eventually([&] { return !PodNames().contains("adult-1-gpu-0"); }, "old pods are deleted"));
  EXPECT_TRUE(WaitForCondition("Rescaling", "False", "Rescaled"));
  const JobStatus status = Status();
  EXPECT_EQ(status.plan->generation, 2);
  EXPECT_EQ(status.last_rescale->reason, "PriceChanged");
  EXPECT_EQ(status.last_rescale->pause_seconds, 0.25);
  EXPECT_EQ(status.restarts, 0);
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "PriceChanged: move (Saves)"); }, "event"));
}

TEST_P(ReplanTest, ASavingThatIsTooSmallIsReportedAndNotTaken) {
  scheduler_.Publish(1.0001);  // the same plan is slightly more expensive; the other saves a lot only at the end
  coordinator_.Progress(999990, 1000);
  scheduler_.Publish(1.01);
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanConsidered", "PriceChanged"); }, "event"));
}

TEST_P(ReplanTest, AnEditedObjectiveIsPlannedAgainWithoutARestart) {
  scheduler_.SetPlanner([](const model::PlanRequest& request) -> absl::StatusOr<model::PlanResult> {
    model::PlanResult result;
    model::ExecutionPlan plan;
    plan.stages = {{{{0, 3}}, {{"cpu", 8, 1}}, {}, 0}};
    plan.estimate.throughput = request.constraints.min_throughput;
    model::ProvisionedPlan provisioned;
    provisioned.stages = {{0, 2, "cpu", 8, 9000, 0, 0}};
    provisioned.throughput = 9000;
    provisioned.cost_per_hour = 0.32;
    result.plan = provisioned;
    result.execution_plan = plan;
    return result;
  });
  PatchSpec("adult", {{"objective", {{"minThroughput", 9000}}}});
  ASSERT_TRUE(Eventually([&] { return coordinator_.applied().size() == 2; }, "a plan for the new goal"));
  EXPECT_EQ(coordinator_.applied().back().second, "ObjectiveChanged");
  EXPECT_EQ(scheduler_.last().constraints.min_throughput, 9000);
  EXPECT_EQ(Status().restarts, 0);
}

TEST_P(ReplanTest, KubectlScaleBoundsThePlan) {
  const auto scale = client_->Patch(TrainingJobs(), {ns_, "adult"}, kube::PatchType::kMerge,
                                    {{"spec", {{"replicas", 2}}}}, {}, "scale");
  ASSERT_THAT(scale, base::IsOk());
  EXPECT_TRUE(Eventually([&] { return scheduler_.last().constraints.max_units == 2; }, "asked with the new bound"));
}

TEST_P(ReplanTest, AnInfeasibleGoalIsReportedAndNothingIsTouched) {
  scheduler_.SetPlanner([](const model::PlanRequest&) -> absl::StatusOr<model::PlanResult> {
    model::PlanResult result;
    result.reasons = {{"limit", "gpu", 61, 2, "61 units of gpu are needed, 2 are allowed"}};
    return result;
  });
  PatchSpec("adult", {{"objective", {{"minThroughput", 1e9}}}});
  EXPECT_TRUE(Eventually([&] { return HasEvent("ReplanInfeasible", "61 units of gpu"); }, "event"));
  Settle();
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  EXPECT_EQ(coordinator_.applied().size(), 1u);
  EXPECT_THAT(PodNames(), Contains("adult-1-gpu-0"));
}

TEST_P(ReplanTest, AKilledSchedulerLeavesRunningJobsAlone) {
  scheduler_.Kill();
  PatchSpec("adult", {{"objective", {{"minThroughput", 500}}}});
  Settle();
  EXPECT_TRUE(Status().conditions.IsTrue("Running"));
  EXPECT_TRUE(Status().conditions.IsTrue("Planned"));
  coordinator_.Progress(123456, 1000);
  EXPECT_TRUE(Eventually([&] { return Status().observed->samples == 123456; }, "it is still observed"));
  scheduler_.Revive();
  EXPECT_TRUE(Eventually([&] { return scheduler_.plans() >= 2; }, "asked when it is back"));
}

}  // namespace
}  // namespace medley::ops

// Answers that take long: the planner, coordinators, logs. The job goes on meanwhile.
#include <gmock/gmock.h>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr base::seconds kSlow{30};

class SlowAnswersTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  void Train() { ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace(); }
  // Pool a becomes too expensive, so that another plan is asked for.
  void AskForAnotherPlan() {
    cluster_.delays["ask for a plan"] = kSlow;
    cluster_.pools["a"].price = 10;
    EXPECT_THAT(cluster_.Pass().actions, Contains("ask for a plan"));
    EXPECT_TRUE(cluster_.memory().search.pending.has_value());
  }
  std::string PoolOfPlan() const { return cluster_.stored_plan()->plan.stages[0].groups[0].pool; }

  FakeCluster cluster_;
};

TEST_F(SlowAnswersTest, TheFirstPlanComesInALaterPass) {
  cluster_.delays["ask for a plan"] = kSlow;
  cluster_.PassFor(base::seconds(20));
  EXPECT_FALSE(cluster_.stored_plan().has_value());
  EXPECT_TRUE(cluster_.in_line());
  Train();
  EXPECT_EQ(cluster_.plans_asked(), 1);
  EXPECT_FALSE(cluster_.memory().search.pending.has_value());
}

// The pool of the servers is offered before it is measured, so the names of the pools do not tell that it was.
TEST_F(SlowAnswersTest, APoolThatIsMeasuredWhileThePlannerIsAskedIsConsideredAtOnce) {
  cluster_.SetSpec({{"resources", {{"serverPool", "a"}}}});
  cluster_.slow_profilers = {"a"};
  cluster_.pools["b"].limit = cluster_.pools["c"].limit = 1;  // of two units
  cluster_.delays["ask for a plan"] = base::seconds(5);
  for (int i = 0; i < 100 && !cluster_.memory().search.pending; ++i) cluster_.PassFor(base::seconds(1));
  ASSERT_TRUE(cluster_.memory().search.pending.has_value()) << cluster_.trace();
  cluster_.slow_profilers.clear();
  while (cluster_.StepCluster()) {
  }
  ASSERT_TRUE(cluster_.HasEvent("Profiled", "pool a")) << cluster_.trace();
  cluster_.Advance(base::seconds(5));
  const PassLog answered = cluster_.Pass();
  EXPECT_EQ(cluster_.plans_asked(), 1);
  EXPECT_LE(answered.requeue_after.value_or(base::seconds(99)), base::milliseconds(1)) << cluster_.trace();
  cluster_.PassFor(base::seconds(7));
  EXPECT_EQ(cluster_.Reason(kPlannedCondition), "True/PlanFound") << cluster_.trace();
}

TEST_F(SlowAnswersTest, APodIsReplacedWhileThePlannerIsAsked) {
  Train();
  AskForAnotherPlan();
  cluster_.FailPod("adult-0-a-1", 137);
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete pods adult-0-a-1"));
  cluster_.PassFor(base::seconds(3));
  EXPECT_THAT(cluster_.pod_names(), Contains("adult-0-a-1"));
  EXPECT_TRUE(cluster_.memory().search.pending.has_value());
}

TEST_F(SlowAnswersTest, ThePlanIsJudgedByWhatItWasAskedWithAndNewsAreConsideredThen) {
  Train();
  AskForAnotherPlan();
  cluster_.pools["a"].price = 20;
  cluster_.PassFor(kSlow - base::seconds(1));
  EXPECT_EQ(cluster_.plans_asked(), 1) << "one question at a time";
  cluster_.Advance(base::seconds(1));
  const PassLog answered = cluster_.Pass();
  EXPECT_EQ(cluster_.plans_asked(), 2);
  EXPECT_EQ(cluster_.memory().consider.considered->prices.at("a"), 10);
  EXPECT_LE(*answered.requeue_after, base::milliseconds(1));
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.memory().consider.considered->prices.at("a"), 20);
  EXPECT_EQ(cluster_.plans_asked(), 3);
}

TEST_F(SlowAnswersTest, AnEditOfTheSpecAsksAnew) {
  Train();
  AskForAnotherPlan();
  cluster_.SetSpec({{"objective", {{"maxUsdPerHour", "9"}}}});
  cluster_.Pass();
  cluster_.Advance(kSlow - base::seconds(1));
  cluster_.Pass();
  EXPECT_EQ(cluster_.plans_asked(), 1);
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_TRUE(cluster_.HasEvent("ReplanConsidered", "ObjectiveChanged")) << cluster_.trace();
}

TEST_F(SlowAnswersTest, NodesAreLeftEvenIfAnotherPlanIsAskedFor) {
  Train();
  AskForAnotherPlan();
  cluster_.noticed_nodes = {"a-0"};
  cluster_.PassFor(base::seconds(5));
  EXPECT_TRUE(cluster_.HasEvent("SpotNotice")) << cluster_.trace();
  EXPECT_EQ(cluster_.stored_plan()->plan.generation, 2);
  EXPECT_EQ(cluster_.stored_plan()->reason, Reason::kSpotNotice);
}

TEST_F(SlowAnswersTest, AnEvacuationIsAskedForOnceAndGivenUpWithTheNotice) {
  cluster_.node_units = {{"a-0", 2}, {"a-1", 0}};
  Train();
  ASSERT_EQ(PoolOfPlan(), "a");
  cluster_.delays["ask for a plan"] = kSlow;
  cluster_.noticed_nodes = {"a-0"};
  cluster_.PassFor(kSlow - base::seconds(5));
  EXPECT_EQ(cluster_.plans_asked(), 1);
  ASSERT_TRUE(cluster_.memory().search.pending.has_value());
  EXPECT_TRUE(cluster_.memory().search.pending->evacuates);
  cluster_.noticed_nodes.clear();
  cluster_.Pass();
  EXPECT_TRUE(!cluster_.memory().search.pending || !cluster_.memory().search.pending->evacuates);
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(PoolOfPlan(), "a");
}

// No unit is free beside those that will be lost, so every attempt to relocate makes the job pause.
TEST_F(SlowAnswersTest, AnEvacuationOfACrowdedPoolGetsItsAnswer) {
  Train();
  cluster_.delays["ask for a plan"] = base::seconds(5);
  cluster_.failures["reserve 2 units"] = base::FailedPrecondition("the units are not free yet");
  cluster_.noticed_nodes = {"a-0"};
  cluster_.PassFor(base::seconds(20));
  EXPECT_TRUE(cluster_.HasEvent("ReplanConsidered", "SpotNotice: move (Forced)")) << cluster_.trace();
}

TEST_F(SlowAnswersTest, AMemberWithoutANodeAsksForOnePlanAPass) {
  cluster_.pools.erase("b");
  cluster_.pools.erase("c");
  Train();
  cluster_.delays["ask for a plan"] = base::milliseconds(10);
  cluster_.blocked_nodes = {"a-0", "a-1"};
  cluster_.FailPod("adult-0-a-1", 137);
  cluster_.PassFor(cluster_.options.schedule_window + base::seconds(5));
  ASSERT_TRUE(cluster_.HasEvent("ReplanInfeasible")) << cluster_.trace();
  for (int i = 0; i < 10; ++i) {
    EXPECT_GT(*cluster_.Pass().requeue_after, base::milliseconds(100)) << cluster_.trace();
    cluster_.Advance(base::milliseconds(10));
  }
}

TEST_F(SlowAnswersTest, AGoalThatIsReachedAgainNeedsNoMove) {
  cluster_.SetSpec({{"objective", {{"minThroughput", 1000}}}});
  Train();
  cluster_.delays["ask for a plan"] = kSlow;
  cluster_.coordinator().throughput = 100;
  cluster_.PassFor(cluster_.options.goal_window + base::seconds(5));
  ASSERT_TRUE(cluster_.memory().search.pending.has_value()) << cluster_.trace();
  cluster_.coordinator().throughput = 2000;
  cluster_.PassFor(kSlow);
  EXPECT_FALSE(cluster_.memory().search.pending.has_value());
  EXPECT_FALSE(cluster_.HasEvent("ReplanConsidered", "ThroughputBelowGoal")) << cluster_.trace();
}

TEST_F(SlowAnswersTest, ASearchIsGivenUpWhenTheJobStopsToTrain) {
  Train();
  AskForAnotherPlan();
  cluster_.coordinator().phase = JobPhase::kRecovering;
  cluster_.Pass();
  EXPECT_FALSE(cluster_.memory().search.pending.has_value());
}

TEST_F(SlowAnswersTest, APriceThatChangesDuringTheFirstPlanIsLookedAt) {
  cluster_.planner = [](const model::PlanRequest&) {
    AskForPlan::Outcome outcome;
    outcome.result = model::PlanResult();
    return outcome;
  };
  cluster_.PassFor(base::seconds(5));
  cluster_.delays["ask for a plan"] = kSlow;
  cluster_.Pass();
  ASSERT_TRUE(cluster_.memory().search.pending.has_value()) << cluster_.trace();
  cluster_.pools["a"].price = 10;
  cluster_.Advance(kSlow);
  EXPECT_LE(*cluster_.Pass().requeue_after, base::milliseconds(1));
  cluster_.Pass();
  cluster_.Advance(kSlow);
  EXPECT_GT(*cluster_.Pass().requeue_after, base::milliseconds(1));
}

TEST_F(SlowAnswersTest, TheCoordinatorIsNotAskedToSuspendBeforeThatIsStored) {
  Train();
  cluster_.failures["patch status"] = base::Unavailable("the API server does not answer");
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(cluster_.Pass().actions, Not(Contains("suspend training")));
  cluster_.failures.clear();
  EXPECT_THAT(cluster_.Pass().actions, Contains("suspend training"));
}

TEST_F(SlowAnswersTest, PodsStayUntilTheCheckpointOfASuspension) {
  Train();
  cluster_.delays["suspend training"] = kSlow;
  const auto pods = cluster_.pod_names();
  cluster_.SetSpec({{"runPolicy", {{"suspend", true}}}});
  cluster_.PassFor(kSlow - base::seconds(1));
  EXPECT_EQ(cluster_.pod_names(), pods);
  EXPECT_EQ(cluster_.Reason(kSuspendedCondition), "Unknown/Suspending");
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  EXPECT_EQ(cluster_.Message(kSuspendedCondition), "checkpoint at step 42");
  EXPECT_THAT(cluster_.pod_names(), IsEmpty());
}

// The coordinator ends when it has suspended; that must not count as the end of training.
TEST_F(SlowAnswersTest, ASuspensionThatNobodyWantsAnyMoreIsCarriedToItsEnd) {
  for (const bool restart : {false, true}) {
    FakeCluster cluster = FakeCluster::Training();
    cluster.delays["suspend training"] = kSlow;
    cluster.SetSpec({{"runPolicy", {{"suspend", true}}}});
    cluster.Pass();
    cluster.SetSpec({{"runPolicy", {{"suspend", false}}}});
    if (restart) cluster.RestartOperator();
    cluster.Pass();
    EXPECT_EQ(cluster.Reason(kSuspendedCondition), "Unknown/Suspending");
    ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
    EXPECT_TRUE(cluster.HasEvent("Suspended", "checkpoint at step 42"));
    EXPECT_TRUE(cluster.HasEvent("Resumed"));
    EXPECT_THAT(cluster.violations(), IsEmpty());
  }
}

TEST_F(SlowAnswersTest, APodIsReplacedEvenIfItsLogCannotBeReadForLong) {
  Train();
  cluster_.delays["read log"] = std::chrono::minutes(5);
  cluster_.FailPod("adult-0-a-1", 3);
  EXPECT_THAT(cluster_.Pass().actions, Not(Contains("delete pods adult-0-a-1")));
  cluster_.Advance(base::seconds(2));
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete pods adult-0-a-1"));
  EXPECT_TRUE(cluster_.HasEvent("MemberFailed", "failed with exit code 3 and is replaced")) << cluster_.trace();
}

TEST_F(SlowAnswersTest, TheLogOfAPodThatWasKilledIsNotWaitedFor) {
  Train();
  cluster_.delays["read log"] = std::chrono::minutes(5);
  cluster_.FailPod("adult-0-a-1", 137);
  EXPECT_THAT(cluster_.Pass().actions, Contains("delete pods adult-0-a-1"));
}

TEST_F(SlowAnswersTest, ASlowCoordinatorGetsItsPlanOnce) {
  cluster_.delays["send plan"] = kSlow;
  Train();
  EXPECT_EQ(cluster_.memory().running.sent_generation, 1);
}

}  // namespace
}  // namespace medley::ops::lifecycle

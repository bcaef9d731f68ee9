// Disruption: nodes and pods that are about to be lost.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct NoticeCase {
  const char* name;
  std::function<void(FakeCluster&)> happens;
  const char* reason;
  const char* sign;
};

class NoticeTest : public testing::TestWithParam<NoticeCase> {};

TEST_P(NoticeTest, TheSamePlanMovesToOtherNodes) {
  FakeCluster cluster = FakeCluster::Training();
  GetParam().happens(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent(GetParam().reason, GetParam().sign)) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("PlanAccepted", "the same plan")) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);
  EXPECT_EQ(ToString(cluster.stored_plan()->reason), GetParam().reason);
  EXPECT_EQ(cluster.Reason(kPodsReadyCondition), "True/AllRunning");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, NoticeTest,
    testing::Values(
        NoticeCase{"SpotNotice", [](FakeCluster& c) { c.noticed_nodes = {"a-0"}; }, "SpotNotice",
                   "node a-0 (taint spot)"},
        NoticeCase{"NodeNotReady", [](FakeCluster& c) { c.nodes_not_ready = {"a-0"}; }, "NodeLost", "not ready"},
        NoticeCase{"Evicted",
                   [](FakeCluster& c) {
                     const Json condition = {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "Eviction"}};
                     c.SetPodStatus("adult-0-a-1", {{"conditions", Json::array({condition})}});
                   },
                   "PodDisrupted", "node a-0"},
        NoticeCase{"DeletedWithGrace", [](FakeCluster& c) { c.TerminatePod("adult-0-a-1", std::chrono::minutes(5)); },
                   "PodDisrupted", "deletion"}),
    [](const auto& each) { return each.param.name; });

// A trainer that the coordinator has left out: for a while it may become fast again, then another replaces it.
TEST(DisruptionTest, ATrainerThatStaysSlowIsReplaced) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().left_out = {{"adult-0-a-1", base::FormatTime(cluster.Observe().now)}};
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.options.slow_patience);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
  cluster.Advance(cluster.options.slow_patience);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("TrainerSlow", "pods that stay slow are replaced: adult-0-a-1")) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("PlanAccepted", "the same plan")) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);
  EXPECT_EQ(cluster.stored_plan()->reason, Reason::kTrainerSlow);
  EXPECT_FALSE(cluster.pod_names().contains("adult-0-a-1"));
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(DisruptionTest, WithoutAFreeUnitASlowTrainerStays) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.failures["reserve 2 units"] = base::ResourceExhausted("bounded by spec.limit of pool a");
  cluster.coordinator().left_out = {{"adult-0-a-1", base::FormatTime(cluster.Observe().now - base::seconds(3600))}};
  cluster.PassFor(base::seconds(300));
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1) << cluster.trace();
  EXPECT_EQ(cluster.plans_asked(), 1);  // slowness is no reason for another plan
  EXPECT_FALSE(cluster.HasEvent("TrainerSlow")) << cluster.trace();
  cluster.failures.clear();
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->reason, Reason::kTrainerSlow);
}

// A slow rack may have more trainers than there are free units.
TEST(DisruptionTest, AsManySlowTrainersAreReplacedAsThereAreUnits) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.most_new_pods = 1;
  const std::string since = base::FormatTime(cluster.Observe().now - base::seconds(3600));
  cluster.coordinator().left_out = {{"adult-0-a-0", since}, {"adult-0-a-1", since}};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  // One after the other, each with the only free unit.
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 3) << cluster.trace();
  EXPECT_FALSE(cluster.HasEvent("TrainerSlow", "adult-0-a-0, adult-0-a-1"));
  EXPECT_TRUE(cluster.HasEvent("TrainerSlow", "pods that stay slow are replaced: adult-0-a-0")) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("TrainerSlow", "pods that stay slow are replaced: adult-0-a-1")) << cluster.trace();
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(DisruptionTest, ANodeThatIsBrieflyNotReadyIsNotLeft) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.nodes_not_ready = {"a-0"};
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.options.schedule_window);
  cluster.nodes_not_ready.clear();
  cluster.Advance(base::seconds(120));
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
}

TEST(DisruptionTest, WithoutRoomInThePoolAnotherPlanIsForced) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.noticed_nodes = {"a-0", "a-1"};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "SpotNotice: move (Forced)")) << cluster.trace();
  EXPECT_EQ(cluster.pod_names(), (std::set<std::string>{"adult-0-b-0", "adult-0-b-1", "adult-coordinator"}));
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

// Pods on a dead node hold their units as long as the Node object stays, so the same plan has no room in their pool.
TEST(DisruptionTest, ARefusedRelocationDoesNotDelayAnotherPlan) {
  FakeCluster cluster;
  cluster.pools["b"].limit = 0;
  cluster.pools["c"].limit = 0;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.noticed_nodes = {"a-0"};
  cluster.failures["reserve 2 units"] = base::ResourceExhausted("bounded by spec.limit of pool a");
  cluster.PassFor(base::seconds(300));  // the pause before the same plan is tried again has grown
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1) << cluster.trace();
  cluster.failures.clear();
  cluster.pools["b"].limit = 4;
  cluster.PassFor(base::seconds(15));
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 2) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "SpotNotice: move (Forced)")) << cluster.trace();
}

TEST(DisruptionTest, WithNowhereToGoTheCoordinatorDrainsInTime) {
  FakeCluster cluster;
  cluster.pools.erase("b");
  cluster.pools.erase("c");
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.noticed_nodes = {"a-0", "a-1"};
  EXPECT_THAT(cluster.Pass().actions, Not(Contains(HasSubstr("drain"))));
  EXPECT_TRUE(cluster.HasEvent("ReplanInfeasible")) << cluster.trace();
  cluster.Advance(cluster.options.notice_patience);
  EXPECT_THAT(cluster.Pass().actions, Contains("drain members adult-0-a-0, adult-0-a-1"));
  cluster.Advance(base::seconds(60));
  EXPECT_THAT(cluster.Pass().actions, Not(Contains(HasSubstr("drain"))));  // notified once
  EXPECT_EQ(cluster.pods().size(), 3u);
}

TEST(DisruptionTest, WithoutElasticityThePlanOnlyRelocates) {
  FakeCluster cluster;
  cluster.SetSpec({{"elasticity", {{"enabled", false}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  cluster.noticed_nodes = {"a-0"};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 2);
  cluster.noticed_nodes = {"a-0", "a-1"};
  cluster.Pass();
  EXPECT_EQ(cluster.plans_asked(), 1);
}

}  // namespace
}  // namespace medley::ops::lifecycle

// Admission: specs that cannot be read or make no sense, finalizers, and pools that the job may not use.
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

struct SpecCase {
  const char* name;
  const char* patch;  // of the spec
  const char* reason;
  const char* message;
};

class SpecTest : public testing::TestWithParam<SpecCase> {};

TEST_P(SpecTest, IsRefusedBeforeAnythingRuns) {
  FakeCluster cluster;
  cluster.SetSpec(Json::parse(GetParam().patch));
  const PassLog pass = cluster.Pass();
  EXPECT_THAT(pass.actions, testing::ElementsAre("patch status"));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), std::string("False/") + GetParam().reason);
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr(GetParam().message));
  EXPECT_TRUE(cluster.HasEvent(GetParam().reason));
  EXPECT_EQ(cluster.status().observed_generation, 2);
}

TEST_P(SpecTest, AnEditIsRefusedAndARunningJobGoesOn) {
  FakeCluster cluster = FakeCluster::Training();
  const int plans = cluster.plans_asked();
  cluster.SetSpec(Json::parse(GetParam().patch));
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/InvalidSpec");  // an edit of the model is refused as such
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_EQ(cluster.plans_asked(), plans);
  EXPECT_EQ(cluster.pods().size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(All, SpecTest,
                         testing::Values(SpecCase{"WrongType", R"({"objective": {"minThroughput": "fast"}})",
                                                  "InvalidSpec", "spec.objective.minThroughput"},
                                         SpecCase{"UnknownModel", R"({"model": {"name": "resnet"}})", "InvalidModel",
                                                  "resnet"}),
                         [](const auto& each) { return each.param.name; });

TEST(AdmissionTest, ARefusalIsWithdrawnWithTheEditAlsoWhileNothingIsPlanned) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.SetSpec({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  cluster.SetSpec({{"objective", {{"minThroughput", "fast"}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  ASSERT_EQ(cluster.Reason(kPlannedCondition), "False/InvalidSpec");
  cluster.SetSpec({{"objective", nullptr}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "");
  EXPECT_EQ(cluster.Reason(kSuspendedCondition), "True/Suspended");
}

TEST(AdmissionTest, AJobThatWaitsForItsTurnSaysSoAfterARefusal) {
  FakeCluster cluster;
  cluster.ahead = "ml/first";
  cluster.SetSpec({{"model", {{"name", "resnet"}}}});
  cluster.Pass();
  ASSERT_EQ(cluster.Reason(kPlannedCondition), "False/InvalidModel");
  cluster.SetSpec({{"model", {{"name", "ctrdnn"}}}});
  cluster.Pass();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/WaitingForTurn");
}

// A spec of a wrong type gives no TrainingJob at all; one that is finished is still cleaned up.
TEST(AdmissionTest, AFinishedJobWithAnUnreadableSpecIsCleanedUp) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().phase = JobPhase::kFailed;
  cluster.Pass();
  cluster.SetSpec({{"runPolicy", {{"ttlSecondsAfterFinished", "soon"}}}});
  ASSERT_FALSE(cluster.Input().job.has_value());
  EXPECT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_FALSE(cluster.job["metadata"].contains("deletionTimestamp"));
}

// The plan is stored in the cluster, so an operator that has just started knows it as well.
TEST(AdmissionTest, ARefusedEditDoesNotStopAJobWhenTheOperatorRestarts) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.SetSpec({{"model", {{"name", "resnet"}}}});
  cluster.RestartOperator();
  cluster.FailPod("adult-0-a-1", 137);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.pods().size(), 3u);
  EXPECT_EQ(cluster.Reason(kPodsReadyCondition), "True/AllRunning");
}

TEST(AdmissionTest, TheFinalizerIsKeptOnce) {
  FakeCluster cluster;
  cluster.job["metadata"]["finalizers"] = {"example.com/other"};
  cluster.Pass();
  EXPECT_EQ(cluster.job["metadata"]["finalizers"].size(), 2u);
  EXPECT_THAT(cluster.Pass().actions, Not(Contains("patch job")));
}

struct PoolCase {
  const char* name;
  std::function<void(FakeCluster&)> arrange;
  const char* reason;
  const char* message;
};

// A template of a job with a container beside the worker.
kube::Json Sidecar(const char* cpu) {
  return {{"spec",
           {{"containers", {{{"name", "sidecar"}, {"image", "s"}, {"resources", {{"requests", {{"cpu", cpu}}}}}}}}}}};
}

class PoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(PoolTest, AJobWithoutUsablePoolsSaysWhich) {
  FakeCluster cluster;
  GetParam().arrange(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), GetParam().reason);
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr(GetParam().message));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_EQ(cluster.Pass().requeue_after, cluster.options.scheduler_retry);
}

// A running job keeps its plan, and its condition Planned does not change with every pass.
TEST_P(PoolTest, ARunningJobKeepsItsPlanQuietly) {
  FakeCluster cluster = FakeCluster::Training();
  const std::set<std::string> pods = cluster.pod_names();
  GetParam().arrange(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.pod_names(), pods);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
  const size_t events = cluster.events().size();
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.events().size(), events) << cluster.trace();
}

class LeftOutPoolTest : public testing::TestWithParam<PoolCase> {};

// A pool that the job names and cannot use is left out, and a condition and an Event say so.
TEST_P(LeftOutPoolTest, AJobRunsOnTheOthers) {
  FakeCluster cluster;
  GetParam().arrange(cluster);
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPoolsUsableCondition), GetParam().reason);
  EXPECT_THAT(cluster.Message(kPoolsUsableCondition), HasSubstr(GetParam().message));
  EXPECT_TRUE(cluster.HasEvent(std::string(GetParam().reason).substr(6), GetParam().message));
  cluster.SetSpec({{"resources", {{"pools", {"a"}}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPoolsUsableCondition), "True/PoolsFound");
}

TEST_P(LeftOutPoolTest, ARunningJobStillLeavesASpotNode) {
  FakeCluster cluster = FakeCluster::Training();
  GetParam().arrange(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPoolsUsableCondition), GetParam().reason);
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 1);
  cluster.noticed_nodes = {"a-0"};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.stored_plan()->plan.generation, 2);
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted");
  for (const auto& [name, pod] : cluster.pods()) EXPECT_NE(pod.String("/spec/nodeName"), "a-0");
}

INSTANTIATE_TEST_SUITE_P(
    All, LeftOutPoolTest,
    testing::Values(PoolCase{"Missing",
                             [](FakeCluster& c) {
                               c.SetSpec({{"resources", {{"pools", {"a", "z"}}}}});
                             },
                             "False/PoolNotFound",
                             "spec.resources.pools[1]: there is no usable ResourcePool 'z' for namespace 'ml'"},
                    PoolCase{"WithoutAPrice",
                             [](FakeCluster& c) {
                               c.SetSpec({{"resources", {{"pools", {"a", "b"}}}}});
                               c.pools["b"].price.reset();
                             },
                             "False/PoolUnpriced", "ResourcePool 'b' has no price: the catalog (revision 7)"},
                    PoolCase{"TooSmallForItsSidecars",
                             [](FakeCluster& c) {
                               c.SetSpec({{"resources", {{"pools", {"a", "b"}}}}});
                               c.job["spec"]["template"] = Sidecar("900m");
                               c.pool_patches["b"] = {{"spec", {{"unit", {{"resources", {{"cpu", "900m"}}}}}}}};
                             },
                             "False/UnitTooSmall",
                             "spec.template: a trainer on pool 'b': containers beside the worker request 900m cpu of a "
                             "unit that has 900m"}),
    [](const auto& each) { return each.param.name; });

INSTANTIATE_TEST_SUITE_P(
    All, PoolTest,
    testing::Values(PoolCase{"NamedPoolsAreMissing",
                             [](FakeCluster& c) {
                               c.SetSpec({{"resources", {{"pools", {"y", "z"}}}}});
                             },
                             "False/PoolNotFound",
                             "spec.resources.pools[0]: there is no usable ResourcePool 'y' for namespace 'ml'"},
                    PoolCase{"NoUnitHasRoomForTheSidecars",
                             [](FakeCluster& c) { c.job["spec"]["template"] = Sidecar("1"); }, "False/UnitTooSmall",
                             "containers beside the worker request 1000m cpu of a unit that has 1"},
                    PoolCase{"NoPoolHasAPrice",
                             [](FakeCluster& c) {
                               for (auto& [name, pool] : c.pools) pool.price.reset();
                             },
                             "False/PoolUnpriced", "has no price"},
                    PoolCase{"NoCatalogYet",
                             [](FakeCluster& c) {
                               c.catalog_revision.reset();
                               for (auto& [name, pool] : c.pools) pool.price.reset();
                             },
                             "Unknown/SchedulerUnavailable", "the scheduling service does not answer"},
                    PoolCase{"ServerPoolIsMissing",
                             [](FakeCluster& c) {
                               c.SetSpec({{"resources", {{"serverPool", "z"}}}});
                             },
                             "False/PoolNotFound", "spec.resources.serverPool"}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace medley::ops::lifecycle

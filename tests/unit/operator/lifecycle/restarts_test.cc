// Restarts: which of them count towards spec.runPolicy.backoffLimit, and when the count begins again.
#include <gmock/gmock.h>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kCoordinatorPod[] = "adult-coordinator";

Json DisruptionTarget(const char* reason) {
  return {{"phase", "Failed"},
          {"conditions", Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}}})}};
}

Json EndedWith(const Json& state) {
  return {{"phase", "Failed"},
          {"containerStatuses", Json::array({{{"name", "worker"}, {"state", {{"terminated", state}}}}})}};
}

Json InPlace(int count, const Json& last) {
  return {{"containerStatuses",
           Json::array({{{"name", "worker"}, {"restartCount", count}, {"lastState", {{"terminated", last}}}}})}};
}

struct RestartCase {
  const char* name;
  std::function<void(FakeCluster&)> happens;
  int counted;
};

class CountedRestartTest : public testing::TestWithParam<RestartCase> {};

TEST_P(CountedRestartTest, OnlyTheProgramsOwnFailureCounts) {
  FakeCluster cluster = FakeCluster::Training();
  GetParam().happens(cluster);
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, 1);
  EXPECT_EQ(cluster.status().counted_restarts, GetParam().counted);
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

RestartCase WithStatus(const char* name, const Json& status, int counted) {
  return {name, [status](FakeCluster& c) { c.SetPodStatus(kCoordinatorPod, status); }, counted};
}

INSTANTIATE_TEST_SUITE_P(
    All, CountedRestartTest,
    testing::Values(
        RestartCase{"Deleted", [](FakeCluster& c) { c.DeletePod(kCoordinatorPod); }, 0},
        RestartCase{"Drained", [](FakeCluster& c) { c.TerminatePod(kCoordinatorPod, base::seconds(30)); }, 0},
        WithStatus("Preempted", DisruptionTarget("PreemptionByScheduler"), 0),
        WithStatus("EvictedByApi", DisruptionTarget("EvictionByEvictionAPI"), 0),
        WithStatus("EvictedByKubelet", {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "DiskPressure."}}, 0),
        WithStatus("EvictedForItsOwnDisk",
                   {{"phase", "Failed"},
                    {"reason", "Evicted"},
                    {"message", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "}},
                   1),
        WithStatus("NodeShutsDown", {{"phase", "Failed"}, {"reason", "Terminated"}}, 0),
        WithStatus("NodeLost", {{"phase", "Failed"}, {"reason", "NodeLost"}}, 0),
        WithStatus("Crashed", EndedWith({{"exitCode", 139}}), 1),
        WithStatus("OutOfMemory", EndedWith({{"reason", "OOMKilled"}, {"exitCode", 137}}), 1),
        WithStatus("CrashedInPlace", InPlace(1, {{"exitCode", 1}}), 1),
        WithStatus("OutOfMemoryInPlace", InPlace(1, {{"reason", "OOMKilled"}, {"exitCode", 137}}), 1),
        WithStatus("NodeRebooted", InPlace(1, {{"reason", "Unknown"}, {"exitCode", 255}}), 0)),
    [](const auto& each) { return each.param.name; });

class RestartsTest : public testing::Test {
 protected:
  void SetUp() override {
    cluster_.SetSpec({{"runPolicy", {{"backoffLimit", 2}}}});
    ASSERT_TRUE(cluster_.RunUntilTraining()) << cluster_.trace();
  }
  void TearDown() override { EXPECT_THAT(cluster_.violations(), IsEmpty()); }
  // The coordinator crashes, and the job runs again unless it has failed.
  void Crash() {
    cluster_.FailPod(kCoordinatorPod, 1);
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  }
  FakeCluster cluster_;
};

TEST_F(RestartsTest, AnyNumberOfDisruptionsIsBorne) {
  for (int i = 0; i < 5; ++i) {
    cluster_.DeletePod(kCoordinatorPod);
    ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  }
  EXPECT_EQ(cluster_.status().restarts, 5);
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
}

TEST_F(RestartsTest, CrashesWithoutProgressEndTheJob) {
  for (int i = 0; i < 3; ++i) Crash();
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/BackoffLimitExceeded");
  EXPECT_THAT(cluster_.Message(kFailedCondition),
              HasSubstr(". 3 restarts without progress, spec.runPolicy.backoffLimit allows 2."));
}

// The fake coordinator starts from nothing each time, so the job comes as far as the time before, and no further.
TEST_F(RestartsTest, TrainingTheSameSamplesAgainIsNotProgress) {
  cluster_.coordinator().samples_done = 5000;
  cluster_.Pass();
  for (int i = 0; i < 3; ++i) {
    Crash();
    if (!cluster_.status().finished()) cluster_.coordinator().samples_done = 5000;
    cluster_.Pass();
  }
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/BackoffLimitExceeded");
}

TEST_F(RestartsTest, ProgressBeginsTheCountAgain) {
  for (int i = 1; i <= 6; ++i) {
    cluster_.coordinator().samples_done = 10000 * i;  // there is no checkpoint volume: samples are progress
    cluster_.Pass();
    EXPECT_EQ(cluster_.status().counted_restarts, 0);
    Crash();
    EXPECT_EQ(cluster_.status().counted_restarts, 1);
  }
  EXPECT_EQ(cluster_.status().restarts, 6);
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "");
}

TEST_F(RestartsTest, TheCountSurvivesTheOperator) {
  Crash();
  cluster_.RestartOperator();
  ASSERT_TRUE(cluster_.Settle()) << cluster_.trace();
  Crash();
  EXPECT_EQ(cluster_.status().counted_restarts, 2);
  cluster_.RestartOperator();
  Crash();
  EXPECT_EQ(cluster_.Reason(kFailedCondition), "True/BackoffLimitExceeded");
}

// With checkpoints only a newer checkpoint is progress: samples after it are trained again after each crash.
TEST(CheckpointedRestartsTest, OnlyANewerCheckpointIsProgress) {
  FakeCluster cluster;
  cluster.SetSpec(
      {{"runPolicy", {{"backoffLimit", 2}}},
       {"checkpoint", {{"volume", {{"mountPath", "/checkpoints"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const auto crash = [&](int64_t samples, int64_t checkpoint) {
    cluster.coordinator().samples_done = samples;
    cluster.coordinator().last_checkpoint_step = checkpoint;
    cluster.Pass();
    cluster.FailPod(kCoordinatorPod, 1);
    ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  };
  crash(10000, 7);
  crash(20000, 7);
  EXPECT_EQ(cluster.status().counted_restarts, 2);
  crash(30000, 8);
  EXPECT_EQ(cluster.status().counted_restarts, 1);
  EXPECT_EQ(cluster.Reason(kFailedCondition), "");
}

TEST(DisruptedMemberTest, DisruptionsAreNotFailures) {
  FakeCluster cluster;
  cluster.SetSpec({{"runPolicy", {{"backoffLimit", 1}}}});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  for (int i = 0; i < 4; ++i) {
    cluster.SetPodStatus("adult-0-a-1", {{"phase", "Failed"}, {"reason", "Evicted"}});
    ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  }
  EXPECT_EQ(cluster.Reason(kFailedCondition), "");
  EXPECT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

// A node with a full disk evicts every pod that is put on it.
TEST(DisruptedMemberTest, APodThatIsLostAgainAndAgainIsReplacedEverMoreSlowly) {
  FakeCluster cluster = FakeCluster::Training();
  const auto lost_for_a_minute = [&] {
    int evictions = 0;
    for (int second = 0; second < 60; ++second) {
      const auto pod = cluster.pods().find("adult-0-a-1");
      if (pod != cluster.pods().end() && pod->second.String("/status/phase") == "Running") {
        cluster.SetPodStatus("adult-0-a-1", {{"phase", "Failed"}, {"reason", "Evicted"}});
        ++evictions;
      }
      cluster.PassFor(base::seconds(1));
    }
    return evictions;
  };
  EXPECT_LE(lost_for_a_minute(), 8) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kFailedCondition), "");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

}  // namespace
}  // namespace medley::ops::lifecycle

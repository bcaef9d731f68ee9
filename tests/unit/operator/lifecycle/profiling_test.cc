// Profiling: what becomes of profiler pods.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct ProfilerCase {
  const char* name;
  int exit_code;
  const char* log;
  const char* event;    // of the first failure
  const char* outcome;  // condition Failed after all retries
};

class ProfilerTest : public testing::TestWithParam<ProfilerCase> {};

TEST_P(ProfilerTest, FailuresAreCountedAndEndTheJob) {
  FakeCluster cluster;
  cluster.SetSpec({{"runPolicy", {{"backoffLimit", 2}}}});
  cluster.profiler_exit_code = GetParam().exit_code;
  cluster.pod_log = GetParam().log;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kFailedCondition), GetParam().outcome) << cluster.trace();
  if (*GetParam().event != '\0') {
    EXPECT_TRUE(cluster.HasEvent("ProfilerFailed", GetParam().event)) << cluster.trace();
    EXPECT_EQ(cluster.status().restarts, 3);
    EXPECT_THAT(cluster.Message(kFailedCondition), HasSubstr(GetParam().event));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ProfilerTest,
    testing::Values(ProfilerCase{"Killed", 137, "", "was killed by signal 9", "True/BackoffLimitExceeded"},
                    ProfilerCase{"Failed", 1, "cannot read data\n", "failed with exit code 1: cannot read data",
                                 "True/BackoffLimitExceeded"},
                    ProfilerCase{"ForGood", 2, "no such column\n", "", "True/ProfileFailed"}),
    [](const auto& each) { return each.param.name; });

TEST(ProfilingTest, AnUnreadableMeasurementIsAFailure) {
  FakeCluster cluster;
  cluster.failures["read log of adult-profile-a"] = base::NotFound("no such pod");
  cluster.Pass();
  cluster.FailPod("adult-profile-a", 0);
  const PassLog pass = cluster.Pass();
  EXPECT_TRUE(cluster.HasEvent("ProfileUnreadable", "adult-profile-a")) << cluster.trace();
  EXPECT_THAT(pass.actions, Contains("delete pods adult-profile-a"));
  EXPECT_EQ(cluster.status().restarts, 1);
}

TEST(ProfilingTest, OneProfilerAtATimeAndEachPoolOnce) {
  FakeCluster cluster;
  cluster.Pass();
  EXPECT_EQ(cluster.pod_names(), (std::set<std::string>{"adult-profile-a"}));
  cluster.FailPod("adult-profile-a", 0);
  EXPECT_THAT(cluster.Pass().actions,
              ElementsAre(HasSubstr("ensure ConfigMap medley-profile-"), "delete pods adult-profile-a"));
  EXPECT_THAT(cluster.Pass().actions, Contains("create pods adult-profile-b"));
}

TEST(ProfilingTest, APoolWithoutUnitsIsLeftOut) {
  FakeCluster cluster;
  cluster.pools["a"].limit = 0;
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_FALSE(cluster.HasEvent("Profiled", "pool a"));
  cluster.pools["a"].limit = 4;  // it is measured while the job trains on
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_TRUE(cluster.HasEvent("Profiled", "pool a")) << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-b-0"));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
}

TEST(ProfilingTest, WithoutAnyUnitTheConditionSaysWhatBoundsThem) {
  FakeCluster cluster;
  for (auto& [name, pool] : cluster.pools) pool.limit = 0;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "False/Infeasible");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("bounded by: nodes of a; nodes of b; nodes of c"));
}

TEST(ProfilingTest, AProfileThatTheCacheDoesNotShowYetIsNotMeasuredAgain) {
  FakeCluster cluster;
  cluster.Pass();
  cluster.FailPod("adult-profile-a", 0);
  cluster.Pass();
  cluster.DeletePod("adult-profile-a");
  // The pass decides from a cache without the ConfigMap, which the API server has.
  const JobInput input = cluster.Input();
  const World world = cluster.Observe();
  std::vector<std::string> actions;
  const Respond respond = [&](const Action& action) {
    actions.push_back(Describe(action));
    return std::holds_alternative<ReadProfiles>(action) ? ReadProfiles::Answer() : cluster.Carry(action);
  };
  Decide(input, world, cluster.memory(), respond, cluster.options);
  EXPECT_THAT(actions, Contains(HasSubstr("get ConfigMap medley-profile-")));
  EXPECT_THAT(actions, Not(Contains("create pods adult-profile-a")));
}

}  // namespace
}  // namespace medley::ops::lifecycle

// Profiles as a job sees them: it plans with the pools that have one.
#include <gmock/gmock.h>

#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ProfilingTest, AllPoolsAreMeasuredSideBySide) {
  FakeCluster cluster;
  cluster.Pass();
  cluster.StepCluster();
  EXPECT_EQ(cluster.pod_names(), (std::set<std::string>{"adult-profile-a", "adult-profile-b", "adult-profile-c"}));
  cluster.Pass();
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/Profiling");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("now on: a, b, c."));
}

TEST(ProfilingTest, ABrokenPoolHarmsNoJob) {
  FakeCluster cluster;
  cluster.profiler_exit_codes["a"] = 137;
  cluster.PassFor(base::seconds(30));
  ASSERT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted") << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-b-0"));
  EXPECT_TRUE(cluster.HasEvent("ProfilerFailed", "adult-profile-a of pool a was killed by signal 9"));
  EXPECT_EQ(cluster.status().restarts, 0);
  // Also a pool that is added while the job runs, for as long as it is tried.
  cluster.pools["d"] = {};
  cluster.profiler_exit_codes["d"] = 1;
  cluster.PassFor(std::chrono::hours(1));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound") << cluster.trace();
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(ProfilingTest, APoolThatIsMeasuredLaterIsConsidered) {
  FakeCluster cluster;
  cluster.profiler_exit_codes["a"] = 137;
  cluster.PassFor(base::seconds(30));
  ASSERT_EQ(cluster.Reason(kRunningCondition), "True/GenerationCommitted") << cluster.trace();
  EXPECT_THAT(cluster.last_request().resources, testing::SizeIs(2));
  cluster.profiler_exit_codes.clear();
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_THAT(cluster.last_request().resources, testing::SizeIs(3));
  EXPECT_TRUE(cluster.HasEvent("ReplanConsidered", "CapacityChanged")) << cluster.trace();
}

TEST(ProfilingTest, AFirstPlanWaitsForSlowProfilersForAWhile) {
  FakeCluster cluster;
  cluster.slow_profilers = {"a"};
  cluster.PassFor(base::seconds(100));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/Profiling");
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("A plan was found; the job still waits"));
  EXPECT_EQ(cluster.plans_asked(), 1);  // not again and again
  cluster.PassFor(base::seconds(60));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound") << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-b-0"));
}

TEST(ProfilingTest, SpecProfilingWaitLimitsTheWait) {
  FakeCluster cluster;
  cluster.SetSpec({{"profiling", {{"wait", "0s"}}}});
  cluster.slow_profilers = {"a", "b"};
  cluster.PassFor(base::seconds(20));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound") << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-c-0"));
}

TEST(ProfilingTest, AnInfeasiblePlanWaitsForThePoolsThatAreMeasured) {
  FakeCluster cluster;
  cluster.slow_profilers = {"a"};
  cluster.pools["b"].limit = cluster.pools["c"].limit = 1;  // of two units
  cluster.PassFor(std::chrono::minutes(5));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/Profiling") << cluster.trace();
  EXPECT_THAT(cluster.Message(kPlannedCondition), HasSubstr("No plan meets the goal on the pools measured so far"));
  cluster.slow_profilers.clear();
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  EXPECT_TRUE(cluster.pod_names().contains("adult-0-a-0"));
}

TEST(ProfilingTest, AJobFailsOnceNoPoolCanBeMeasured) {
  FakeCluster cluster;
  cluster.SetSpec({{"runPolicy", {{"backoffLimit", 2}}}});
  cluster.profiler_exit_code = 1;
  cluster.pod_log = "out of memory\n";
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kFailedCondition), "True/ProfileFailed") << cluster.trace();
  EXPECT_THAT(cluster.Message(kFailedCondition), testing::AllOf(testing::StartsWith("out of memory. Profiler pod "),
                                                                HasSubstr("failed with exit code 1.")));
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
}

TEST(ProfilingTest, AJobFailsAtOnceWhenEveryPoolRefusesPermanently) {
  FakeCluster cluster;
  cluster.profiler_exit_code = 2;
  cluster.pod_log = "no such column\n";
  cluster.PassFor(base::seconds(20));
  EXPECT_EQ(cluster.Reason(kFailedCondition), "True/ProfileFailed") << cluster.trace();
  EXPECT_THAT(cluster.Message(kFailedCondition), testing::AllOf(testing::StartsWith("no such column. Profiler pod "),
                                                                HasSubstr("A retry will not help.")));
  EXPECT_EQ(CountOf(cluster.Message(kFailedCondition), "no such column"), 1) << "of all pools together";
  for (const char* other : {kRunningCondition, kPodsReadyCondition}) {
    EXPECT_THAT(cluster.Message(other), testing::Not(HasSubstr("no such column")));
  }
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

}  // namespace
}  // namespace medley::ops::lifecycle

// Decide as a whole: actions and answers, and the life of a job from its first pass to its end.
#include "operator/lifecycle/lifecycle.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "operator/lifecycle/pass.h"
#include "tests/unit/operator/lifecycle/fake_cluster.h"

namespace medley::ops::lifecycle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What Pass::Own asks the compiler.
TEST(OwnerTest, StateBelongsToOneSource) {
  static_assert(IsSourceOf("pods", "operator/lifecycle/pods.cc"));
  static_assert(IsSourceOf("pods", "/src/operator/lifecycle/pods.cc"));
  static_assert(IsSourceOf("pods", "pods.cc"));
  for (const char* other :
       {"operator/lifecycle/units.cc", "operator/lifecycle/stored_pods.cc", "operator/lifecycle/pods.h",
        "operator/lifecycle/pods", "operator/lifecycle/pods.cc/units.cc", ""}) {
    EXPECT_FALSE(IsSourceOf("pods", other)) << other;
  }
}

TEST(LifecycleTest, TheFirstPassMakesTheObjects) {
  FakeCluster cluster;
  EXPECT_THAT(cluster.Pass().actions,
              ElementsAre("patch job", "create Secret " + cluster.SecretName(), "ensure ConfigMap adult-spec",
                          "ensure Service adult-coordinator", "ensure NetworkPolicy adult", "patch status"));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "Unknown/Profiling");
}

TEST(LifecycleTest, AJobIsProfiledPlannedAndRun) {
  FakeCluster cluster = FakeCluster::Training();
  EXPECT_EQ(cluster.pod_names(), (std::set<std::string>{"adult-0-a-0", "adult-0-a-1", "adult-coordinator"}));
  EXPECT_EQ(cluster.Reason(kPlannedCondition), "True/PlanFound");
  EXPECT_EQ(cluster.Reason(kPodsReadyCondition), "True/AllRunning");
  EXPECT_EQ(cluster.status().replicas, 2);
  EXPECT_TRUE(cluster.Has("PodDisruptionBudget", "adult"));
  EXPECT_TRUE(cluster.HasEvent("PlanAccepted", "(FirstPlan)"));
  EXPECT_EQ(cluster.plans_asked(), 1);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(LifecycleTest, ACompleteJobIsCleanedUp) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().phase = JobPhase::kComplete;
  EXPECT_THAT(cluster.Pass().actions,
              ElementsAre("patch status", "delete pods adult-0-a-0, adult-0-a-1", "patch status"));
  ASSERT_TRUE(cluster.Settle());
  EXPECT_THAT(cluster.pod_names(), IsEmpty());
  EXPECT_EQ(cluster.Reason(kCompleteCondition), "True/TrainingComplete");
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

TEST(LifecycleTest, AJobThatStoppedEarlySaysWhy) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().phase = JobPhase::kComplete;
  cluster.coordinator().stopped_early = true;
  cluster.coordinator().message = "stopped early at step 200: auc has not improved";
  ASSERT_TRUE(cluster.Settle());
  EXPECT_EQ(cluster.Reason(kCompleteCondition), "True/StoppedEarly");
  EXPECT_EQ(cluster.Message(kCompleteCondition), "stopped early at step 200: auc has not improved");
}

TEST(LifecycleTest, ConditionsOfOtherControllersStay) {
  FakeCluster cluster;
  const kube::Json foreign = {{"type", "example.com/Admitted"}, {"status", "True"}, {"reason", "Yes"}, {"extra", 1}};
  cluster.job["status"]["conditions"] = kube::Json::array({foreign});
  ASSERT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
  const auto has = [&] {
    const kube::Json& all = cluster.job["status"]["conditions"];
    return std::count(all.begin(), all.end(), foreign);
  };
  EXPECT_EQ(has(), 1);
  cluster.RestartOperator();
  cluster.coordinator().phase = JobPhase::kComplete;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(has(), 1);
  EXPECT_EQ(cluster.Reason(kCompleteCondition), "True/TrainingComplete");
  // Another controller removes its condition: it does not come back.
  cluster.job["status"]["conditions"] = kube::Json::array();
  cluster.SetSpec({{"runPolicy", {{"ttlSecondsAfterFinished", 100000}}}});
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(has(), 0);
}

TEST(LifecycleTest, ACheckpointThatCannotBeWrittenIsAConditionAndAnEventButNoRestart) {
  FakeCluster cluster = FakeCluster::Training();
  EXPECT_EQ(cluster.status().conditions.Find(kCheckpointFailingCondition), nullptr);
  cluster.coordinator().last_checkpoint_step = 40;
  cluster.coordinator().checkpoint_failure = {"2026-11-23T07:00:00Z", "dense-e1-t0.mck: No space left on device",
                                              false};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kCheckpointFailingCondition), "True/VolumeNotWritable");
  EXPECT_EQ(cluster.Message(kCheckpointFailingCondition),
            "Since 2026-11-23T07:00:00Z, checkpoints cannot be written; the job goes on and tries again, and the last "
            "checkpoint is of step 40. The last error: dense-e1-t0.mck: No space left on device");
  EXPECT_EQ(cluster.status().restarts, 0);
  EXPECT_EQ(cluster.status().Phase(), "Running");
  cluster.coordinator().checkpoint_failure->paused = true;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kCheckpointFailingCondition), "True/JournalNotWritable");
  cluster.coordinator().checkpoint_failure.reset();
  cluster.coordinator().last_checkpoint_step = 80;
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.Reason(kCheckpointFailingCondition), "False/CheckpointWritten");
  EXPECT_EQ(cluster.Message(kCheckpointFailingCondition), "The last checkpoint is of step 80.");
  EXPECT_TRUE(cluster.HasEvent("VolumeNotWritable", "No space left on device"));
}

TEST(LifecycleTest, TheStatusSaysHowManyRowsWereInMemory) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.Pass();
  EXPECT_FALSE(cluster.status().observed->embeddings);
  cluster.coordinator().embedding_rows = EmbeddingRows{.in_memory = 10, .on_disk = 30, .pulled = 100, .loaded = 20};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.status().observed->embeddings, (EmbeddingStatus{10, 30, 0.8}));
}

// One Event for each sentence.
TEST(LifecycleTest, AnEventSaysThatTablesAreElsewhereThanPlanned) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.coordinator().device_tables = DeviceTables{.place = model::TablePlace::kDevice, .used = 100, .found = 100};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.status().observed->tables, (TablesStatus{"Device", 1, ""}));
  EXPECT_FALSE(cluster.HasEvent("TablesElsewhere", ""));
  cluster.coordinator().device_tables =
      DeviceTables{.place = model::TablePlace::kCache, .used = 200, .found = 150, .instead = "The plan has more."};
  ASSERT_TRUE(cluster.Settle()) << cluster.trace();
  EXPECT_EQ(cluster.status().observed->tables, (TablesStatus{"Cache", 0.75, "The plan has more."}));
  EXPECT_TRUE(cluster.HasEvent("TablesElsewhere", "The plan has more."));
}

TEST(LifecycleTest, AnotherLeaderDoesNotCountTheSpentMoneyAgain) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.Advance(std::chrono::minutes(30));
  cluster.Pass();  // writes the status
  const double before = cluster.status().cost->spent_usd;
  cluster.RestartOperator();
  EXPECT_LT(cluster.Pass().spent_usd, 1e-6);
  cluster.Advance(std::chrono::minutes(30));
  // Two members at 1 USD an hour; the coordinator is free.
  EXPECT_NEAR(cluster.Pass().spent_usd, 1, 1e-3);
  EXPECT_NEAR(cluster.status().cost->spent_usd, before + 1, 1e-3);
}

// The actions of a pass, and their answers.
struct Recorded {
  std::vector<std::string> actions;
  std::vector<Answer> answers;
};

TEST(LifecycleTest, TheSameArgumentsAndAnswersGiveTheSameActions) {
  FakeCluster cluster;
  const JobInput input = cluster.Input();
  const World world = cluster.Observe();
  Recorded first;
  const Respond carry = [&](const Action& action) {
    first.actions.push_back(Describe(action));
    return first.answers.emplace_back(cluster.Carry(action));
  };
  const Decision decision = Decide(input, world, Memory(), carry, cluster.options);
  ASSERT_FALSE(decision.unanswered.has_value());
  ASSERT_GT(first.actions.size(), 5u);
  // Also for each beginning of the pass: it ends before the first action without an answer.
  for (size_t count = 0; count <= first.answers.size(); ++count) {
    std::vector<std::string> actions;
    const Respond replay = [&](const Action& action) -> std::optional<Answer> {
      if (actions.size() == count) return std::nullopt;
      actions.push_back(Describe(action));
      return first.answers[actions.size() - 1];
    };
    const Decision again = Decide(input, world, Memory(), replay, cluster.options);
    EXPECT_EQ(actions, std::vector<std::string>(first.actions.begin(), first.actions.begin() + count));
    ASSERT_EQ(again.unanswered.has_value(), count < first.answers.size());
    if (again.unanswered) {
      EXPECT_EQ(Describe(*again.unanswered), first.actions[count]);
    } else {
      EXPECT_EQ(again.effects.size(), decision.effects.size());
      EXPECT_EQ(again.requeue_after, decision.requeue_after);
    }
  }
}

TEST(LifecycleTest, AnAnswerOfAnotherActionIsAnError) {
  FakeCluster cluster;
  std::vector<std::string> actions;
  const Respond respond = [&](const Action& action) {
    actions.push_back(Describe(action));
    return actions.size() == 1 ? PoolsView() : cluster.Carry(action);
  };
  const Decision decision = Decide(cluster.Input(), cluster.Observe(), Memory(), respond, cluster.options);
  EXPECT_THAT(decision.status, base::StatusIs(absl::StatusCode::kInternal));
  // The pass goes on to its end, where the status is written.
  EXPECT_EQ(actions.back(), "patch status");
}

TEST(LifecycleTest, AFailedActionEndsThePassWithItsErrorAndIsTriedAgain) {
  FakeCluster cluster;
  cluster.failures["ensure Service"] = base::Unavailable("the API server does not answer");
  const PassLog failed = cluster.Pass();
  EXPECT_THAT(failed.status, base::StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(failed.requeue_after.has_value());
  EXPECT_EQ(failed.actions.back(), "patch status");
  cluster.failures.clear();
  EXPECT_TRUE(cluster.RunUntilTraining()) << cluster.trace();
}

TEST(LifecycleTest, AnotherJobOfTheSameNameDoesNotGetTheMemory) {
  FakeCluster cluster = FakeCluster::Training();
  cluster.job["metadata"]["uid"] = "job-2";
  cluster.job.erase("status");
  const PassLog pass = cluster.Pass();
  EXPECT_EQ(cluster.memory().uid, "job-2");
  EXPECT_FALSE(cluster.memory().stored_plan.record.has_value());
  EXPECT_THAT(pass.status, base::StatusIs(absl::StatusCode::kUnavailable));  // the earlier job's Secret still exists
}

}  // namespace
}  // namespace medley::ops::lifecycle

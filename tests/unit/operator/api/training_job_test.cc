#include "operator/api/training_job.h"

#include "common/base/testing/status_matchers.h"

namespace medley::ops {
namespace {

using base::IsOk;
using base::StatusIs;
using kube::Json;
using testing::HasSubstr;

kube::Object Job(const char* spec) {
  return kube::Object(Json{{"metadata", {{"name", "adult"}, {"namespace", "ml"}}}, {"spec", Json::parse(spec)}});
}

TEST(TrainingJobTest, DefaultsAreThoseOfTheSchema) {
  const auto job = TrainingJob::FromObject(Job(R"({"model": {"name": "ctrdnn"}, "data": {}})"));
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->objective, Objective());
  EXPECT_EQ(job->planner, PlannerChoice());
  EXPECT_EQ(job->elasticity, Elasticity());
  EXPECT_EQ(job->run_policy.backoff_limit, 6);
  EXPECT_EQ(job->run_policy.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_FALSE(job->run_policy.active_deadline_seconds.has_value());
  EXPECT_TRUE(job->managed_by_us());
  EXPECT_EQ(job->batch_size, 512);
  EXPECT_EQ(job->spec["model"]["parameters"]["embeddingDim"], 16);
}

TEST(TrainingJobTest, ReadsEverything) {
  const auto job = TrainingJob::FromObject(Job(R"({
    "model": {"name": "mlp"}, "data": {"volume": {"persistentVolumeClaim": {"claimName": "d"}, "mountPath": "/data"}},
    "training": {"epochs": 3, "seed": 9, "sync": {"mode": "Percentage", "fraction": 0.25, "hierarchy": "Auto"}},
    "objective": {"minThroughput": 20000, "deadline": "2h", "budgetUsd": "5", "maxUsdPerHour": "12.5"},
    "planner": {"name": "exact", "timeBudget": "300ms", "parallelism": {"schedule": "GPIPE"}},
    "resources": {"pools": ["a", "b"], "serverPool": "a"},
    "elasticity": {"enabled": false, "minUnits": 2, "maxUnits": 8,
                   "replan": {"onPriceChange": false, "minSaving": "12.5%", "cooldown": "30s"}},
    "runPolicy": {"suspend": true, "backoffLimit": 0, "activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0,
                  "cleanPodPolicy": "All", "managedBy": "other.dev/x",
                  "disruptionBudget": {"enabled": false, "maxUnavailable": 3},
                  "schedulingPolicy": {"queue": "q", "priorityClass": "high", "schedulerName": "volcano", "podGroup": "None"}},
    "template": {"metadata": {"labels": {"team": "ads"}}, "spec": {"nodeSelector": {"a": "b"}}}})"));
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->objective, (Objective{20000, 7200, 5, 12.5}));
  EXPECT_EQ(job->planner, (PlannerChoice{"exact",
                                         0.3,
                                         0,
                                         model::ScheduleKind::kGpipe,
                                         {model::SyncMode::kPercentage, 0.25, 0.02, model::Grouping::kAuto}}));
  EXPECT_EQ(job->elasticity, (Elasticity{false, 2, 8, false, 0.125, 30}));
  EXPECT_EQ(job->run_policy.ttl_seconds_after_finished, 0);
  EXPECT_EQ(job->run_policy.active_deadline_seconds, 60);
  EXPECT_EQ(job->run_policy.queue, "q");
  EXPECT_EQ(job->run_policy.scheduler_name, "volcano");
  EXPECT_EQ(job->run_policy.pod_group, PodGroupChoice::kNone);
  EXPECT_FALSE(job->run_policy.disruption_budget);
  EXPECT_EQ(job->run_policy.max_unavailable, 3);
  EXPECT_FALSE(job->managed_by_us());
  EXPECT_FALSE(ManagedByThisOperator(job->object));
  EXPECT_EQ(job->data_volume->mount_path, "/data");
  EXPECT_EQ(job->data_volume->source.dump(), R"({"persistentVolumeClaim":{"claimName":"d"}})");
  EXPECT_FALSE(job->checkpoint_volume.has_value());
  EXPECT_FALSE(job->keeps_checkpoints());
  EXPECT_EQ(job->seed, 9u);
  EXPECT_EQ(job->pod_template.metadata["labels"]["team"], "ads");
}

TEST(TrainingJobTest, SlowTrainersAreDetectedWhereTheJobSaysSo) {
  const auto sync = [](const std::string& training) {
    return TrainingJob::FromObject(Job((R"({"training": )" + training + "}").c_str()))->planner.sync;
  };
  EXPECT_EQ(sync(R"({"sync": {"mode": "Full"}})").detector, model::AnomalyDetector::kOff);
  const model::Synchronisation usual = sync(R"({"sync": {"anomaly": {}}})");
  EXPECT_EQ(usual.detector, model::AnomalyDetector::kRunningMean);
  EXPECT_EQ(usual.anomaly_window, 16);
  EXPECT_EQ(usual.anomaly_threshold, 3);
  const model::Synchronisation window =
      sync(R"({"sync": {"anomaly": {"detector": "Window", "window": 50, "threshold": 4.5}}})");
  EXPECT_EQ(window.detector, model::AnomalyDetector::kWindow);
  EXPECT_EQ(window.anomaly_window, 50);
  EXPECT_EQ(window.anomaly_threshold, 4.5);
}

TEST(TrainingJobTest, TheErrorHasThePathOfAWrongType) {
  EXPECT_THAT(
      TrainingJob::FromObject(Job(R"({"runPolicy": {"backoffLimit": "six"}})")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.runPolicy.backoffLimit: must be an integer")));
  EXPECT_THAT(TrainingJob::FromObject(Job(R"({"objective": {"deadline": "soon"}})")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.objective.deadline: must be a duration")));
  EXPECT_THAT(TrainingJob::FromObject(Job(R"({"elasticity": {"replan": {"minSaving": "much"}}})")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spec.elasticity.replan.minSaving")));
  EXPECT_THAT(
      TrainingJob::FromObject(Job(R"({"runPolicy": {"schedulingPolicy": {"podGroup": "Kueue"}}})")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "spec.runPolicy.schedulingPolicy.podGroup: must be one of Auto, None, SchedulerPlugins, Volcano, "
               "is 'Kueue'"));
  EXPECT_THAT(TrainingJob::FromObject(Job("[]")), StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace medley::ops

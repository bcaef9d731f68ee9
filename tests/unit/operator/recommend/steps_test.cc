#include "operator/recommend/steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/recommend/jobs.h"

namespace medley::ops::recommend {
namespace {

using kube::Json;

Choice Four() {
  Choice choice;
  choice.pool = "gpu";
  choice.nodes = 4;
  choice.throughput = 4000;
  choice.usd_per_hour = 8;
  choice.node_selector = {{"medley.dev/machine", "gpu"}};
  choice.tolerations = {{{"key", "gpu"}, {"operator", "Exists"}}};
  return choice;
}

kube::Object Patched(kube::Object object, const Json& patch) {
  kube::MergePatch(object.mutable_json(), patch);
  return object;
}

kube::Object Assigned(ForeignKind kind, const kube::Object& object) {
  return Patched(object, AssignPatch(ReadForeignJob(kind, object).value(), object, Four(), "signed"));
}

TEST(StepsTest, AJobGetsNodesAndPlaceAndIsResumedAtOnce) {
  kube::Object object = SuspendedJob(2);
  object.mutable_json()["spec"]["template"]["spec"]["tolerations"] = {{{"key", "mine"}}};
  const kube::Object job = Assigned(ForeignKind::kJob, object);
  EXPECT_EQ(job.At("/spec/suspend"), Json(false));
  EXPECT_EQ(job.At("/spec/parallelism"), 4);
  EXPECT_EQ(job.At("/spec/completions"), 4);
  EXPECT_EQ(job.At("/spec/template/spec/nodeSelector"), (Json{{"medley.dev/machine", "gpu"}}));
  EXPECT_EQ(job.At("/spec/template/spec/tolerations").size(), 2U);
  EXPECT_EQ(job.At("/spec/template/spec/tolerations/0/key"), "mine");
  EXPECT_EQ(job.annotation(kResumedAnnotation), "true");
  EXPECT_EQ(Json::parse(job.annotation(kChosenAnnotation)),
            (Json{{"pool", "gpu"}, {"nodes", 4}, {"usdPerHour", 8.0}, {"samplesPerSecond", 4000.0}}));
  EXPECT_EQ(NextStep(ReadForeignJob(ForeignKind::kJob, job).value(), job, true, std::nullopt), ForeignStep::kNothing);
}

TEST(StepsTest, OnlyKueueResumesWhatIsInItsQueue) {
  kube::Object object = SuspendedJob(2);
  object.SetLabel("kueue.x-k8s.io/queue-name", "q");
  const kube::Object job = Assigned(ForeignKind::kJob, object);
  EXPECT_EQ(job.At("/spec/suspend"), Json(true));
  EXPECT_EQ(job.At("/spec/parallelism"), 4);
  EXPECT_EQ(NextStep(ReadForeignJob(ForeignKind::kJob, job).value(), job, true, std::nullopt), ForeignStep::kNothing);
}

TEST(StepsTest, OnlyTheTargetOfAJobSetIsPlaced) {
  kube::Object object = SuspendedJobSet();
  object.SetAnnotation(kTargetAnnotation, "workers");
  const kube::Object set = Assigned(ForeignKind::kJobSet, object);
  EXPECT_EQ(set.At("/spec/replicatedJobs/0"), object.At("/spec/replicatedJobs/0"));
  EXPECT_EQ(set.At("/spec/replicatedJobs/1/template/spec/template/spec/nodeSelector"),
            (Json{{"disk", "ssd"}, {"medley.dev/machine", "gpu"}}));
  EXPECT_EQ(set.At("/spec/replicatedJobs/1/template/spec/parallelism"), 4);
  EXPECT_EQ(set.At("/spec/suspend"), Json(false));
}

TEST(StepsTest, ATrainJobIsAssignedThenItsJobSetIsRemadeThenItIsResumed) {
  kube::Object object = SuspendedTrainJob();
  const Json own = {{"targetJobs", {{{"name", "node"}}}}, {"spec", {{"serviceAccountName", "me"}}}};
  object.mutable_json()["spec"]["podTemplateOverrides"] = {own};
  const auto read = [](const kube::Object& o) { return ReadForeignJob(ForeignKind::kTrainJob, o).value(); };
  EXPECT_EQ(NextStep(read(object), object, false, 1), ForeignStep::kAssign);
  const kube::Object assigned = Assigned(ForeignKind::kTrainJob, object);
  EXPECT_EQ(assigned.At("/spec/suspend"), Json(true));
  EXPECT_EQ(assigned.At("/spec/trainer/numNodes"), 4);
  // The user's entry stays the last, which wins.
  ASSERT_EQ(assigned.At("/spec/podTemplateOverrides").size(), 2U);
  EXPECT_EQ(assigned.At("/spec/podTemplateOverrides/1"), own);
  EXPECT_EQ(assigned.At("/spec/podTemplateOverrides/0/targetJobs/0/name"), "node");
  EXPECT_EQ(assigned.At("/spec/podTemplateOverrides/0/spec/nodeSelector/medley.dev~1machine"), "gpu");
  EXPECT_EQ(NextStep(read(assigned), assigned, true, 1), ForeignStep::kRecreate);
  EXPECT_EQ(NextStep(read(assigned), assigned, true, 4), ForeignStep::kResume);
  EXPECT_EQ(NextStep(read(assigned), assigned, true, std::nullopt), ForeignStep::kResume);
  const kube::Object resumed = Patched(assigned, ResumePatch(read(assigned), assigned));
  EXPECT_EQ(resumed.At("/spec/suspend"), Json(false));
  EXPECT_EQ(NextStep(read(resumed), resumed, true, 4), ForeignStep::kNothing);
  EXPECT_EQ(NextStep(read(resumed), resumed, true, 1), ForeignStep::kRecreate) << "made of an older spec";
  // Its user suspends it again.
  kube::Object again = resumed;
  again.mutable_json()["spec"]["suspend"] = true;
  EXPECT_EQ(NextStep(read(again), again, true, 4), ForeignStep::kNothing);
}

TEST(StepsTest, APatchIsForOneVersionOfOneObject) {
  const kube::Object object = SuspendedJob();
  const ForeignJob job = ReadForeignJob(ForeignKind::kJob, object).value();
  for (const Json& patch : {AssignPatch(job, object, Four(), "signed"), ResumePatch(job, object),
                            ConditionPatch(job, object, false, "Infeasible", "why", {})}) {
    EXPECT_EQ(patch.at("metadata").at("resourceVersion"), "7");
    EXPECT_EQ(patch.at("metadata").at("uid"), "u-1");
  }
}

TEST(StepsTest, AConditionIsWrittenWhenItIsNewAndLeavesTheOthers) {
  kube::Object object = SuspendedJob();
  object.mutable_json()["status"]["conditions"] = {{{"type", "Suspended"}, {"status", "True"}}};
  const ForeignJob job = ReadForeignJob(ForeignKind::kJob, object).value();
  const base::WallTime early = base::ParseTime("2026-01-01T00:00:00Z").value();
  const auto later = early + base::seconds(60);
  object = Patched(object, ConditionPatch(job, object, false, "Infeasible", "why", early));
  ASSERT_EQ(object.At("/status/conditions").size(), 2U);
  EXPECT_EQ(object.At("/status/conditions/0/type"), "Suspended");
  EXPECT_EQ(object.At("/status/conditions/1/status"), "False");
  EXPECT_EQ(ConditionPatch(job, object, false, "Infeasible", "why", later), Json());
  object = Patched(object, ConditionPatch(job, object, false, "Infeasible", "other", later));
  EXPECT_EQ(object.At("/status/conditions/1/lastTransitionTime"), "2026-01-01T00:00:00Z");
  object = Patched(object, ConditionPatch(job, object, true, "Chosen", "4 nodes", later));
  EXPECT_EQ(object.At("/status/conditions/1/lastTransitionTime"), "2026-01-01T00:01:00Z");
  EXPECT_EQ(object.At("/status/conditions").size(), 2U);
}

}  // namespace
}  // namespace medley::ops::recommend

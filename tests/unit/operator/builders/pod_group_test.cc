#include "operator/builders/pod_group.h"

#include <gmock/gmock.h>

#include "operator/builders/objects.h"
#include "tests/unit/operator/builders/sample_job.h"

namespace medley::ops {
namespace {

using kube::Json;

TrainingJob With(const Json& scheduling) {
  Json json = SampleJobJson();
  json["spec"]["runPolicy"]["schedulingPolicy"] = scheduling;
  return ReadJob(json);
}
std::optional<PodGroupKind> Wanted(const Json& scheduling) { return WantedPodGroup(With(scheduling).run_policy); }

TEST(PodGroupTest, TheKindFollowsTheSchedulerUnlessItIsNamed) {
  EXPECT_EQ(Wanted(Json::object()), std::nullopt);
  EXPECT_EQ(Wanted({{"queue", "q"}}), std::nullopt);
  EXPECT_EQ(Wanted({{"schedulerName", "volcano"}}), PodGroupKind::kVolcano);
  EXPECT_EQ(Wanted({{"schedulerName", "gang"}}), PodGroupKind::kSchedulerPlugins);
  EXPECT_EQ(Wanted({{"schedulerName", "gang"}, {"podGroup", "Volcano"}}), PodGroupKind::kVolcano);
  EXPECT_EQ(Wanted({{"schedulerName", "volcano"}, {"podGroup", "SchedulerPlugins"}}), PodGroupKind::kSchedulerPlugins);
  EXPECT_EQ(Wanted({{"schedulerName", "volcano"}, {"podGroup", "None"}}), std::nullopt);
}

TEST(PodGroupTest, VolcanosGroupHasQueueAndPriority) {
  const TrainingJob job = With({{"schedulerName", "volcano"}, {"queue", "ads"}, {"priorityClass", "high"}});
  const kube::Object group = PodGroup(job, PodGroupKind::kVolcano, 5);
  EXPECT_EQ(group.api_version(), "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ(group.At("/spec"), (Json{{"minMember", 5}, {"queue", "ads"}, {"priorityClassName", "high"}}));
  EXPECT_EQ(group.controller()->uid, "u-1");
  kube::Object pod = EachKindOfPod(job, SamplePool(), {})[1];
  EXPECT_EQ(pod.String("/spec/schedulerName"), "volcano");
  EXPECT_EQ(pod.label("kueue.x-k8s.io/queue-name"), "");
  JoinPodGroup(job, PodGroupKind::kVolcano, pod);
  EXPECT_EQ(pod.annotation("scheduling.k8s.io/group-name"), "adult");
}

TEST(PodGroupTest, SchedulerPluginsGroupCounts) {
  const TrainingJob job = With({{"schedulerName", "gang"}, {"queue", "ads"}});
  const kube::Object group = PodGroup(job, PodGroupKind::kSchedulerPlugins, 5);
  EXPECT_EQ(group.api_version(), "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ(group.At("/spec"), (Json{{"minMember", 5}}));
  kube::Object pod = EachKindOfPod(job, SamplePool(), {})[1];
  EXPECT_EQ(pod.label("kueue.x-k8s.io/queue-name"), "ads");
  JoinPodGroup(job, PodGroupKind::kSchedulerPlugins, pod);
  EXPECT_EQ(pod.label("scheduling.x-k8s.io/pod-group"), "adult");
}

TEST(DisruptionBudgetTest, MinAvailableIsPodsLessMaxUnavailable) {
  Json json = SampleJobJson();
  EXPECT_EQ(DisruptionBudget(ReadJob(json), 5).At("/spec/minAvailable"), 4);
  json["spec"]["runPolicy"]["disruptionBudget"]["maxUnavailable"] = 3;
  EXPECT_EQ(DisruptionBudget(ReadJob(json), 5).At("/spec/minAvailable"), 2);
  EXPECT_EQ(DisruptionBudget(ReadJob(json), 2).At("/spec/minAvailable"), 0);
}

TEST(NetworkPolicyTest, OnlyTheNamedNamespacesReachTheJob) {
  const TrainingJob job = ReadJob(SampleJobJson());
  const Json open = JobNetworkPolicy(job, {"i", 7070, 9090}).At("/spec/ingress");
  ASSERT_EQ(open.size(), 3u);
  EXPECT_EQ(open[1]["from"][0]["namespaceSelector"], Json::object());
  EXPECT_FALSE(open[2].contains("from"));
  WorkerSettings settings{"i", 7070, 9090};
  settings.operator_namespace = "medley-system";
  settings.metrics_namespace = "monitoring";
  const Json bound = JobNetworkPolicy(job, settings).At("/spec/ingress");
  EXPECT_EQ(bound[1]["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "medley-system");
  EXPECT_EQ(bound[2]["from"][0]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "monitoring");
  EXPECT_EQ(bound[2]["ports"][0]["port"], 9090);
  EXPECT_EQ(JobNetworkPolicy(job, {"i", 7070, 0}).At("/spec/ingress").size(), 2u);
}

TEST(ImageTest, PullPolicyAndSecretsAreDefaultsThatATemplateExtends) {
  WorkerSettings settings{"i", 7070, 0};
  settings.image_pull_policy = "IfNotPresent";
  settings.image_pull_secrets = {"site"};
  Json json = SampleJobJson();
  json["spec"]["template"]["spec"] = {{"imagePullSecrets", {{{"name", "team"}}}}};
  for (const kube::Object& pod : EachKindOfPod(ReadJob(json), SamplePool(), settings)) {
    EXPECT_EQ(pod.At("/spec/containers/0/imagePullPolicy"), "IfNotPresent");
    EXPECT_EQ(pod.At("/spec/imagePullSecrets"), (Json{{{"name", "site"}}, {{"name", "team"}}}));
  }
  json = SampleJobJson();  // its template sets imagePullPolicy: Always
  EXPECT_EQ(CoordinatorPod(ReadJob(json), settings).At("/spec/containers/0/imagePullPolicy"), "Always");
}

}  // namespace
}  // namespace medley::ops

#include "operator/capacity/trim.h"

#include <gtest/gtest.h>

#include "operator/api/resources.h"
#include "operator/api/start_failure.h"
#include "operator/builders/pods.h"
#include "operator/capacity/capacity_view.h"

namespace medley::ops {
namespace {

using kube::Json;

// The heap memory of a JSON value: nodes of maps, elements of arrays, strings.
size_t HeapBytes(const Json& json) {
  constexpr size_t kMapNode = 32 + sizeof(std::string) + sizeof(Json) + 16;  // including malloc's header
  size_t bytes = 0;
  const auto text = [](const std::string& s) { return s.size() < 16 ? 0 : s.size() + 17; };
  if (json.is_object()) {
    bytes += 48 + 16;
    for (const auto& [key, value] : json.items()) bytes += kMapNode + text(key) + HeapBytes(value);
  } else if (json.is_array()) {
    bytes += 24 + 16 + 16;
    for (const Json& value : json) bytes += sizeof(Json) + HeapBytes(value);
  } else if (json.is_string()) {
    bytes += sizeof(std::string) + 16 + text(json.get_ref<const std::string&>());
  }
  return bytes;
}

// A pod as a real API server returns it, with the fields that admission, scheduler and kubelet add.
kube::Object RunningPod() {
  kube::Object owner(TrainingJobs(), {"team", "adult"});
  owner.mutable_json()["metadata"]["uid"] = "7c6f2a8e-0f43-4a6c-9a0e-1d2b3c4d5e6f";
  owner.mutable_json()["spec"] = Json::parse(R"({"model": {"name": "ctrdnn"}, "data": {
      "train": {"uri": "file:///data/t.csv", "format": "csv"},
      "schema": {"label": {"column": 0}, "categorical": [1], "numeric": [2]}}})");
  const TrainingJob job = TrainingJob::FromObject(owner).value();
  ResourcePool pool;
  pool.name = "v100-spot";
  pool.unit_resources = {{"cpu", "4"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "1"}};
  kube::Object pod =
      MemberPod(job, {"adult-1-v100-spot-0", Role::kTrainer, "v100-spot", 1, 0}, pool, {}, "10.0.0.1:7070", 3);
  Json& json = pod.mutable_json();
  json["metadata"]["uid"] = "0b7b0f0a-52a3-4f0c-b9b5-8f4e7f1f2a3b";
  json["metadata"]["resourceVersion"] = "123456";
  json["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  json["metadata"]["managedFields"] =
      Json::array({{{"manager", "medley-operator"}, {"operation", "Update"}, {"fieldsV1", json["spec"]}},
                   {{"manager", "kubelet"}, {"subresource", "status"}, {"fieldsV1", json["spec"]}}});
  json["spec"]["nodeName"] = "n1";
  json["status"] = Json::parse(R"({"phase": "Running", "podIP": "10.0.0.7", "qosClass": "Guaranteed",
      "hostIP": "10.1.0.1", "podIPs": [{"ip": "10.0.0.7"}], "startTime": "2026-01-01T00:00:00Z",
      "conditions": [
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
      "containerStatuses": [{"name": "worker", "image": "ghcr.io/medley/worker:0.1.0", "ready": true,
        "imageID": "ghcr.io/medley/worker@sha256:0123456789abcdef", "containerID": "containerd://0123",
        "restartCount": 0, "lastState": {}, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]})");
  return pod;
}

TEST(TrimTest, APodKeepsWhatTheOperatorReads) {
  const kube::Object whole = RunningPod();
  kube::Object trimmed = whole;
  TrimPod(trimmed);
  EXPECT_EQ(AmountsOf(trimmed), AmountsOf(whole));
  EXPECT_EQ(CoordinatorOf(trimmed), "10.0.0.1:7070");
  EXPECT_EQ(trimmed.key(), whole.key());
  EXPECT_EQ(trimmed.uid(), whole.uid());
  EXPECT_EQ(trimmed.controller()->uid, whole.controller()->uid);
  for (const char* label : {kJobNameLabel, kRoleLabel, kPoolLabel, kStageLabel, kGenerationLabel}) {
    EXPECT_EQ(trimmed.label(label), whole.label(label)) << label;
  }
  for (const char* path : {"/metadata/creationTimestamp", "/spec/nodeName", "/status/phase", "/status/podIP",
                           "/status/containerStatuses/0/restartCount"}) {
    EXPECT_FALSE(whole.At(path).is_null()) << path;
    EXPECT_EQ(trimmed.At(path), whole.At(path)) << path;
  }
  EXPECT_EQ(trimmed.String("/status/conditions/1/type"), "PodScheduled");
  // When the pod got its node: the bill, and the time that new units of a pool take, begin there.
  EXPECT_EQ(trimmed.String("/status/conditions/1/lastTransitionTime"), "2026-01-01T00:00:00Z");
  kube::Object again = trimmed;
  TrimPod(again);
  EXPECT_EQ(again.json(), trimmed.json());
}

// Who may edit the pod may change its labels; the containers cannot be changed.
TEST(TrimTest, AMemberThatLostItsLabelsIsStillAMember) {
  kube::Object expected = RunningPod();
  TrimPod(expected);
  for (const char* patch : {R"({"metadata": {"labels": null}})",
                            R"({"metadata": {"labels": {"medley.dev/job-name": null, "medley.dev/pool": null}}})",
                            R"({"metadata": {"labels": {"medley.dev/role": "profiler", "medley.dev/pool": "cheap",
                                                        "medley.dev/job-name": "other"}}})"}) {
    kube::Object pod = RunningPod();
    kube::MergePatch(pod.mutable_json(), Json::parse(patch));
    TrimPod(pod);
    for (const char* label : {kJobNameLabel, kRoleLabel, kPoolLabel}) {
      EXPECT_EQ(pod.label(label), expected.label(label)) << label << " " << patch;
    }
  }
}

TEST(TrimTest, LabelsMakeNoMember) {
  for (const char* patch : {R"({"metadata": {"ownerReferences": null}})",
                            R"({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                                "name": "adult", "uid": "u", "controller": true}]}})",
                            R"({"metadata": {"ownerReferences": [{"apiVersion": "evil.dev/v1", "kind": "TrainingJob",
                                "name": "adult", "uid": "u", "controller": true}]}})",
                            R"({"metadata": {"ownerReferences": [{"apiVersion": "medley.dev/v1alpha1",
                                "kind": "TrainingJob", "name": "adult", "uid": "u"}]}})"}) {
    kube::Object pod = RunningPod();
    kube::MergePatch(pod.mutable_json(), Json::parse(patch));
    TrimPod(pod);
    EXPECT_TRUE(pod.At("/metadata/labels").is_null()) << patch;
    EXPECT_FALSE(pod.controller().has_value()) << patch;
  }
}

// An eviction for the pod's own use of disk differs from others in its message.
TEST(TrimTest, AnEvictedPodKeepsWhy) {
  kube::Object pod = RunningPod();
  pod.mutable_json()["status"] = {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "exceeds the limit 1Gi"}};
  TrimPod(pod);
  EXPECT_EQ(pod.String("/status/message"), "exceeds the limit 1Gi");
}

// Every message about a pod that cannot start is that of the whole pod.
TEST(TrimTest, APodThatHasNotStartedKeepsWhy) {
  const base::WallTime now = *base::ParseTime("2026-01-01T00:10:00Z");
  for (const char* status :
       {R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available"}]})",
        R"({"phase": "Pending", "initContainerStatuses": [{"name": "wait", "image": "x",
            "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}}}]})",
        R"({"phase": "Pending", "containerStatuses": [{"name": "worker", "image": "x",
            "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "secret not found"}}}]})",
        R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True",
            "lastTransitionTime": "2026-01-01T00:05:00Z"}]})"}) {
    kube::Object whole = RunningPod();
    whole.mutable_json()["status"] = Json::parse(status);
    const auto before = StartFailureOf(whole, now);
    ASSERT_TRUE(before.has_value()) << status;
    kube::Object trimmed = whole;
    TrimPod(trimmed);
    const auto after = StartFailureOf(trimmed, now);
    ASSERT_TRUE(after.has_value()) << status;
    EXPECT_EQ(after->message, before->message);
    EXPECT_EQ(after->since, before->since);
    EXPECT_FALSE(trimmed.annotation(kTemplateAnnotation).empty());
    EXPECT_EQ(trimmed.annotation(kTemplateAnnotation), whole.annotation(kTemplateAnnotation));
    kube::Object again = trimmed;
    TrimPod(again);
    EXPECT_EQ(again.json(), trimmed.json());
  }
}

// The operator must hold 10,000 pods in 150 MiB in all, so the JSON of a pod must stay well below 15 KiB.
TEST(TrimTest, APodIsSmall) {
  kube::Object own = RunningPod();
  kube::Object other = own;
  other.mutable_json()["metadata"]["labels"] = {{"app", "web"}, {"pod-template-hash", "5d5f7c"}};
  const size_t before = HeapBytes(own.json());
  other.mutable_json()["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet";
  TrimPod(own);
  TrimPod(other);
  EXPECT_LT(HeapBytes(own.json()), 7500u);
  EXPECT_LT(HeapBytes(other.json()), 3500u);
  EXPECT_GT(before, 3 * HeapBytes(own.json()));
}

TEST(TrimTest, ANodeKeepsWhatCapacityDependsOn) {
  const kube::Object whole(Json::parse(R"({"metadata": {"name": "n", "labels": {"zone": "a"},
      "annotations": {"node.alpha.kubernetes.io/ttl": "0"}, "managedFields": [{}]},
    "spec": {"podCIDR": "10.0.0.0/24", "unschedulable": true, "taints": [{"key": "k", "effect": "NoExecute"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}, "capacity": {"cpu": "8"},
      "images": [{"names": ["a", "b"], "sizeBytes": 5}], "nodeInfo": {"osImage": "Debian"},
      "conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastHeartbeatTime": "x"},
                     {"type": "PreemptScheduled", "status": "True"}]}})"));
  kube::Object trimmed = whole;
  TrimNode(trimmed);
  EXPECT_EQ(FactsOf(trimmed), FactsOf(whole));
  EXPECT_FALSE(trimmed.json()["status"].contains("images"));
  EXPECT_FALSE(trimmed.json()["metadata"].contains("annotations"));
}

TEST(TrimTest, AnyObjectLosesItsFieldManagers) {
  kube::Object object(Json::parse(R"({"metadata": {"name": "c", "managedFields": [{}], "annotations":
      {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "data": {"k": "v"}})"));
  TrimAny(object);
  EXPECT_EQ(object.json(), Json::parse(R"({"metadata": {"name": "c", "annotations": {"a": "b"}},
                                           "data": {"k": "v"}})"));
}

}  // namespace
}  // namespace medley::ops

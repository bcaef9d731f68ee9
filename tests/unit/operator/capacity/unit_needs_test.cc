#include "operator/capacity/unit_needs.h"

#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/capacity/node_facts.h"
#include "operator/capacity/trim.h"

namespace medley::ops {
namespace {

using kube::Json;

kube::Object PoolOfUnits(const Json& spec = Json::object()) {
  kube::Object pool(ResourcePools(), {"", "spot"});
  pool.mutable_json()["spec"] = Json::parse(R"({"class": "CPU", "scaling": "Autoscaled", "limit": 4,
      "price": {"usdPerUnitHour": "1"}, "nodeSelector": {"pool": "spot"},
      "unit": {"resources": {"cpu": "4", "memory": "16Gi"}}})");
  kube::MergePatch(pool.mutable_json()["spec"], spec);
  return pool;
}

// A member of a job with this spec, as the API server and the cache hold it while it waits for a node.
kube::Object Waiting(const Json& spec, const ResourcePool& pool, const std::string& zone = "") {
  kube::Object object(TrainingJobs(), {"team", "adult"});
  object.mutable_json()["metadata"]["uid"] = "u";
  object.mutable_json()["spec"] = Json::parse(R"({"model": {"name": "ctrdnn"}, "data": {
      "train": {"uri": "file:///data/t.csv", "format": "csv"},
      "schema": {"label": {"column": 0}, "categorical": [1], "numeric": [2]}}})");
  kube::MergePatch(object.mutable_json()["spec"], spec);
  const auto job = TrainingJob::FromObject(object);
  EXPECT_THAT(job, base::IsOk()) << spec;
  kube::Object pod = MemberPod(*job, {"adult-0-spot-0", Role::kTrainer, "spot", 0, 0, zone}, pool, {}, "", 1);
  Json& json = pod.mutable_json();
  json["spec"]["schedulerName"] = json["spec"].value("schedulerName", "default-scheduler");
  json["spec"]["preemptionPolicy"] = "PreemptLowerPriority";
  json["spec"]["priority"] = 0;
  json["spec"]["serviceAccountName"] = "default";
  json["spec"]["hostNetwork"] = json["spec"].value("hostNetwork", false);
  json["status"] = Json::parse(R"({"phase": "Pending", "conditions": [
      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}]})");
  return pod;
}

bool Speaks(kube::Object pod, const ResourcePool& pool, const std::string& zone = "") {
  TrimPod(pod);
  return AsksOnlyForUnit(pod, pool, zone);
}

// `spec.template` of the job, and the pods that it makes.
Json Template(const char* pod_spec) { return {{"template", {{"spec", Json::parse(pod_spec)}}}}; }

TEST(UnitNeedsTest, APodThatAsksForMoreThanTheUnitSaysNothingOfThePool) {
  const ResourcePool pool = ResourcePool::FromObject(PoolOfUnits()).value();
  const Json specs[] = {
      Template(R"({"nodeSelector": {"gpu": "none-has-it"}})"),
      Template(R"({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]}}}})"),
      Template(R"({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}}})"),
      Template(R"({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "none"}}}]}}})"),
      Template(R"({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
          [{"topologyKey": "zone", "labelSelector": {}}]}}})"),
      Template(R"({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
          "whenUnsatisfiable": "DoNotSchedule"}]})"),
      Template(R"({"schedulerName": "nobody"})"),
      Template(R"({"runtimeClassName": "gvisor"})"),
      Template(R"({"hostNetwork": true})"),
      Template(R"({"schedulingGates": [{"name": "evil"}]})"),
      Template(R"({"resourceClaims": [{"name": "gpu", "resourceClaimName": "none"}]})"),
      Template(R"({"os": {"name": "windows"}})"),
      Template(R"({"aFieldOfALaterKubernetes": "x"})"),
      Template(R"({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "in-another-zone"}}]})"),
      Template(R"({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]})"),
      Template(R"({"volumes": [{"name": "v", "csi": {"driver": "none"}}]})"),
      Template(R"({"containers": [{"resources": {"requests": {"example.com/fpga": "1"},
                                                  "limits": {"example.com/fpga": "1"}}}]})"),
      Template(R"({"containers": [{"resources": {"requests": {"ephemeral-storage": "9Ti"}}}]})"),
      Template(R"({"containers": [{"name": "sidecar", "resources": {"limits": {"example.com/nic": "1"}}}]})"),
      Template(R"({"initContainers": [{"name": "init", "resources": {"requests": {"cpu": "5"}}}]})"),
      Template(R"({"containers": [{"ports": [{"containerPort": 9, "hostPort": 9}]}]})"),
      Template(R"({"overhead": {"cpu": "1"}})"),
      {{"template", {{"metadata", {{"labels", {{"scheduling.x-k8s.io/pod-group", "never"}}}}}}}},
      {{"template", {{"metadata", {{"annotations", {{"scheduling.k8s.io/group-name", "never"}}}}}}}},
      {{"runPolicy", {{"schedulingPolicy", {{"schedulerName", "volcano"}}}}}},
      {{"runPolicy", {{"schedulingPolicy", {{"queue", "empty"}}}}}},
      {{"data", {{"volume", {{"persistentVolumeClaim", {{"claimName", "d"}}}, {"mountPath", "/data"}}}}}},
  };
  for (const Json& spec : specs) EXPECT_FALSE(Speaks(Waiting(spec, pool), pool)) << spec;
}

TEST(UnitNeedsTest, APodThatAsksForTheUnitSpeaks) {
  const ResourcePool pool = ResourcePool::FromObject(PoolOfUnits()).value();
  const Json specs[] = {
      Json::object(),
      Template(R"({"tolerations": [{"operator": "Exists"}]})"),
      Template(R"({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}})"),
      Template(R"({"nodeSelector": {"pool": "of-another"}})"),  // the pool's selector counts
      Template(R"({"volumes": [{"name": "v", "configMap": {"name": "m"}}, {"name": "e", "emptyDir": {}}]})"),
      Template(R"({"containers": [{"name": "sidecar", "image": "x"}], "terminationGracePeriodSeconds": 5})"),
      // Part of the unit: operator/builders/worker_share.h.
      Template(R"({"containers": [{"name": "sidecar", "resources": {"requests": {"memory": "1"}}}]})"),
      Template(R"({"containers": [{"env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "99"}}}]})"),
      {{"template", {{"metadata", {{"labels", {{"team", "x"}}}}}}}},
  };
  for (const Json& spec : specs) EXPECT_TRUE(Speaks(Waiting(spec, pool), pool)) << spec;
}

TEST(UnitNeedsTest, WhatThePoolItselfAsksForIsNotBeyondIt) {
  const ResourcePool pool =
      ResourcePool::FromObject(
          PoolOfUnits(Json::parse(R"({"template": {"metadata": {"labels": {"kueue.x-k8s.io/x": "y"}},
          "spec": {"runtimeClassName": "nvidia", "schedulerName": "gpus"}}})")))
          .value();
  EXPECT_TRUE(Speaks(Waiting(Json::object(), pool), pool));
  EXPECT_FALSE(Speaks(Waiting(Template(R"({"runtimeClassName": "kata"})"), pool), pool));
}

TEST(UnitNeedsTest, WhatTheOperatorItselfAsksForIsNotBeyondThePool) {
  const ResourcePool pool = ResourcePool::FromObject(PoolOfUnits()).value();
  kube::Object pod = Waiting(Json::object(), pool, "z1");
  EXPECT_TRUE(Speaks(pod, pool, "z1"));
  EXPECT_FALSE(Speaks(pod, pool, "z2"));
  KeepOff({"n1", "n2"}, pod);
  EXPECT_TRUE(Speaks(pod, pool, "z1"));
  kube::Object anywhere = Waiting(Json::object(), pool);
  KeepOff({"n1"}, anywhere);
  EXPECT_TRUE(Speaks(anywhere, pool));
}

TEST(UnitNeedsTest, AnEditorOfThePodCannotHideWhatItAsksFor) {
  const ResourcePool pool = ResourcePool::FromObject(PoolOfUnits()).value();
  kube::Object pod = Waiting(Template(R"({"schedulerName": "nobody"})"), pool);
  for (const char* needs : {"", "0", "x"}) {
    pod.SetAnnotation(kNeedsAnnotation, needs);
    EXPECT_FALSE(Speaks(pod, pool));
  }
  pod = Waiting(Json::object(), pool);
  pod.SetAnnotation(kNeedsAnnotation, "x");
  EXPECT_TRUE(Speaks(pod, pool));
  pod.mutable_json()["spec"]["priority"] = -100;
  EXPECT_FALSE(Speaks(pod, pool)) << "autoscalers bring no nodes for it";
}

}  // namespace
}  // namespace medley::ops

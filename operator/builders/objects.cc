#include "operator/builders/objects.h"

#include <algorithm>

#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/owned.h"

namespace medley::ops {
namespace {

using kube::Json;

// A namespaceSelector for the namespace `name`; for every namespace when `name` is empty.
Json Namespace(const std::string& name) {
  if (name.empty()) return Json::object();
  return {{"matchLabels", {{"kubernetes.io/metadata.name", name}}}};
}

}  // namespace

kube::Object CoordinatorService(const TrainingJob& job, const WorkerSettings& settings) {
  kube::Object service = Owned(job, kube::resources::Services(), CoordinatorName(job.name()));
  service.mutable_json()["spec"] = {
      {"type", "ClusterIP"},
      {"clusterIP", "None"},
      {"ipFamilyPolicy", "PreferDualStack"},  // also where the cluster has one family
      {"publishNotReadyAddresses", true},
      {"selector", {{kJobNameLabel, job.name()}, {kRoleLabel, ToString(Role::kCoordinator)}}},
      {"ports", {{{"name", "grpc"}, {"port", settings.listen_port}, {"protocol", "TCP"}}}}};
  return service;
}

kube::Object SpecConfigMap(const TrainingJob& job) {
  kube::Object map = Owned(job, kube::resources::ConfigMaps(), SpecConfigMapName(job.name()));
  Json spec = job.spec;
  spec.erase("template");
  map.mutable_json()["data"] = {{"spec.json", spec.dump(2)}};
  map.mutable_json()["immutable"] = true;
  return map;
}

kube::Object JobNetworkPolicy(const TrainingJob& job, const WorkerSettings& settings) {
  kube::Object policy = Owned(job, kube::resources::NetworkPolicies(), job.name());
  const Json members = {{"matchLabels", {{kJobNameLabel, job.name()}}}};
  Json ingress = Json::array();
  ingress.push_back({{"from", Json::array({{{"podSelector", members}}})}});
  ingress.push_back(
      {{"from", Json::array({{{"namespaceSelector", Namespace(settings.operator_namespace)},
                              {"podSelector", {{"matchLabels", {{"app.kubernetes.io/name", "medley-operator"}}}}}}})},
       {"ports", Json::array({{{"port", settings.listen_port}, {"protocol", "TCP"}}})}});
  if (settings.metrics_port > 0) {
    Json scrapers = {{"ports", Json::array({{{"port", settings.metrics_port}, {"protocol", "TCP"}}})}};
    if (!settings.metrics_namespace.empty()) {
      scrapers["from"] = Json::array({{{"namespaceSelector", Namespace(settings.metrics_namespace)}}});
    }
    ingress.push_back(std::move(scrapers));
  }
  policy.mutable_json()["spec"] = {
      {"podSelector", members}, {"policyTypes", {"Ingress"}}, {"ingress", std::move(ingress)}};
  return policy;
}

kube::Object DisruptionBudget(const TrainingJob& job, int pods) {
  kube::Object budget = Owned(job, kube::resources::PodDisruptionBudgets(), DisruptionBudgetName(job.name()));
  budget.mutable_json()["spec"] = {
      {"minAvailable", std::max(0, pods - job.run_policy.max_unavailable)},
      // A pod that is not ready does no work, so it must not block the drain of its node.
      {"unhealthyPodEvictionPolicy", "AlwaysAllow"},
      {"selector",
       {{"matchLabels", {{kJobNameLabel, job.name()}}},
        {"matchExpressions",
         Json::array({{{"key", kRoleLabel}, {"operator", "In"}, {"values", {"coordinator", "server", "trainer"}}}})}}}};
  return budget;
}

kube::Object ProfileConfigMap(const std::string& ns, const std::string& hash, const std::string& pool,
                              const std::string& profile_json) {
  kube::Object map(kube::resources::ConfigMaps(), {ns, ProfileConfigMapName(hash, pool)});
  map.SetLabel(kProfileLabel, hash);
  map.SetLabel(kPoolLabel, pool);
  map.SetLabel("app.kubernetes.io/managed-by", "medley-operator");
  map.mutable_json()["data"] = {{"profile.json", profile_json}};
  return map;
}

}  // namespace medley::ops

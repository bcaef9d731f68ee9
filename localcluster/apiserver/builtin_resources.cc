// The table of the built-in resources.
#include "common/base/status.h"
#include "localcluster/apiserver/builtin_schemas.h"
#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {
namespace {

struct Row {
  const char* group;
  const char* version;
  const char* plural;
  const char* singular;
  const char* kind;
  bool namespaced;
  bool status;
  bool generation;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  const char* definition;
};

std::vector<Row> Rows() {
  return {
      {"",
       "v1",
       "namespaces",
       "namespace",
       "Namespace",
       false,
       true,
       false,
       {"ns"},
       {},
       "io.k8s.api.core.v1.Namespace"},
      {"", "v1", "pods", "pod", "Pod", true, true, false, {"po"}, {"all"}, "io.k8s.api.core.v1.Pod"},
      {"", "v1", "services", "service", "Service", true, true, false, {"svc"}, {"all"}, "io.k8s.api.core.v1.Service"},
      {"",
       "v1",
       "configmaps",
       "configmap",
       "ConfigMap",
       true,
       false,
       false,
       {"cm"},
       {},
       "io.k8s.api.core.v1.ConfigMap"},
      {"", "v1", "secrets", "secret", "Secret", true, false, false, {}, {}, "io.k8s.api.core.v1.Secret"},
      {"", "v1", "nodes", "node", "Node", false, true, false, {"no"}, {}, "io.k8s.api.core.v1.Node"},
      {"",
       "v1",
       "resourcequotas",
       "resourcequota",
       "ResourceQuota",
       true,
       true,
       false,
       {"quota"},
       {},
       "io.k8s.api.core.v1.ResourceQuota"},
      {"",
       "v1",
       "limitranges",
       "limitrange",
       "LimitRange",
       true,
       false,
       false,
       {"limits"},
       {},
       "io.k8s.api.core.v1.LimitRange"},
      {"", "v1", "events", "event", "Event", true, false, false, {"ev"}, {}, "io.k8s.api.core.v1.Event"},
      {"",
       "v1",
       "serviceaccounts",
       "serviceaccount",
       "ServiceAccount",
       true,
       false,
       false,
       {"sa"},
       {},
       "io.k8s.api.core.v1.ServiceAccount"},
      {"networking.k8s.io",
       "v1",
       "networkpolicies",
       "networkpolicy",
       "NetworkPolicy",
       true,
       false,
       true,
       {"netpol"},
       {},
       "io.k8s.api.networking.v1.NetworkPolicy"},
      {"policy",
       "v1",
       "poddisruptionbudgets",
       "poddisruptionbudget",
       "PodDisruptionBudget",
       true,
       true,
       true,
       {"pdb"},
       {},
       "io.k8s.api.policy.v1.PodDisruptionBudget"},
      {"scheduling.k8s.io",
       "v1",
       "priorityclasses",
       "priorityclass",
       "PriorityClass",
       false,
       false,
       false,
       {"pc"},
       {},
       "io.k8s.api.scheduling.v1.PriorityClass"},
      {"coordination.k8s.io",
       "v1",
       "leases",
       "lease",
       "Lease",
       true,
       false,
       false,
       {},
       {},
       "io.k8s.api.coordination.v1.Lease"},
      {"apiextensions.k8s.io",
       "v1",
       "customresourcedefinitions",
       "customresourcedefinition",
       "CustomResourceDefinition",
       false,
       true,
       true,
       {"crd", "crds"},
       {"api-extensions"},
       "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"},
  };
}

}  // namespace

// Defined by the generated builtin_schemas.cc.
std::string_view BuiltinSchemasText();

kube::Definitions BuiltinDefinitions() {
  kube::Json all = kube::Json::parse(BuiltinSchemasText(), nullptr, false);
  MEDLEY_CHECK(all.is_object(), "schemas/builtin.json is broken");
  return kube::Definitions(std::move(all));
}

std::vector<InfoPtr> BuiltinResources(const kube::Definitions& definitions) {
  std::vector<InfoPtr> out;
  for (const Row& row : Rows()) {
    auto info = std::make_shared<ResourceInfo>();
    info->resource = {row.group, row.version, row.plural, row.kind, row.namespaced};
    info->singular = row.singular;
    info->list_kind = std::string(row.kind) + "List";
    info->short_names = row.short_names;
    info->categories = row.categories;
    info->has_status = row.status;
    info->has_generation = row.generation;
    info->definition = row.definition;
    info->schema = definitions.Find(row.definition);
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace medley::localcluster::apiserver

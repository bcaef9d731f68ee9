#include "localcluster/apiserver/discovery.h"

#include <map>
#include <set>

namespace medley::localcluster::apiserver {
namespace {

const char* const kVerbs[] = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};

using Versions = std::map<std::string, std::map<std::string, std::vector<InfoPtr>>>;  // group, version

Versions ByGroup(const Registry& registry) {
  Versions out;
  for (const InfoPtr& info : registry.All()) {
    out[info->resource.group][info->resource.version].push_back(info);
  }
  return out;
}

struct Sub {
  std::string name;
  std::string group, version, kind;
  std::vector<std::string> verbs;
};

std::vector<Sub> Subresources(const ResourceInfo& info) {
  std::vector<Sub> out;
  const kube::Resource& r = info.resource;
  if (info.has_status) out.push_back({"status", r.group, r.version, r.kind, {"get", "patch", "update"}});
  if (info.has_scale) {
    out.push_back({"scale", "autoscaling", "v1", "Scale", {"get", "patch", "update"}});
  }
  if (r.kind == "Pod" && info.builtin) {
    out.push_back({"log", "", "v1", "Pod", {"get"}});
    out.push_back({"proxy", "", "v1", "PodProxyOptions", {"get"}});
    out.push_back({"binding", "", "v1", "Binding", {"create"}});
    out.push_back({"eviction", "policy", "v1", "Eviction", {"create"}});
  }
  return out;
}

kube::Json GroupVersion(const std::string& group, const std::string& version) {
  return {{"groupVersion", group.empty() ? version : group + "/" + version}, {"version", version}};
}

kube::Json GroupJson(const std::string& group, const std::map<std::string, std::vector<InfoPtr>>& versions) {
  kube::Json list = kube::Json::array();
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    list.push_back(GroupVersion(group, it->first));
  }
  return {{"name", group}, {"versions", list}, {"preferredVersion", list[0]}};
}

kube::Json ResourceEntry(const ResourceInfo& info) {
  kube::Json entry = {{"name", info.resource.plural},
                      {"singularName", info.singular},
                      {"namespaced", info.resource.namespaced},
                      {"kind", info.resource.kind},
                      {"verbs", kVerbs}};
  if (!info.short_names.empty()) entry["shortNames"] = info.short_names;
  if (!info.categories.empty()) entry["categories"] = info.categories;
  return entry;
}

kube::Json AggregatedResource(const ResourceInfo& info) {
  const kube::Resource& r = info.resource;
  kube::Json subs = kube::Json::array();
  for (const Sub& sub : Subresources(info)) {
    subs.push_back({{"subresource", sub.name},
                    {"responseKind", {{"group", sub.group}, {"version", sub.version}, {"kind", sub.kind}}},
                    {"verbs", sub.verbs}});
  }
  kube::Json out = {{"resource", r.plural},
                    {"responseKind", {{"group", r.group}, {"version", r.version}, {"kind", r.kind}}},
                    {"scope", r.namespaced ? "Namespaced" : "Cluster"},
                    {"singularResource", info.singular},
                    {"verbs", kVerbs}};
  if (!info.short_names.empty()) out["shortNames"] = info.short_names;
  if (!info.categories.empty()) out["categories"] = info.categories;
  if (!subs.empty()) out["subresources"] = std::move(subs);
  return out;
}

}  // namespace

kube::Json CoreVersions(const std::string& address) {
  return {
      {"kind", "APIVersions"},
      {"versions", {"v1"}},
      {"serverAddressByClientCIDRs", kube::Json::array({{{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", address}}})}};
}

kube::Json GroupList(const Registry& registry) {
  kube::Json groups = kube::Json::array();
  for (const auto& [group, versions] : ByGroup(registry)) {
    if (!group.empty()) groups.push_back(GroupJson(group, versions));
  }
  return {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}};
}

kube::Json Group(const Registry& registry, const std::string& group) {
  const Versions all = ByGroup(registry);
  const auto it = all.find(group);
  if (it == all.end()) return nullptr;
  kube::Json json = GroupJson(group, it->second);
  json["kind"] = "APIGroup";
  json["apiVersion"] = "v1";
  return json;
}

kube::Json ResourceList(const Registry& registry, const std::string& group, const std::string& version) {
  const Versions all = ByGroup(registry);
  const auto g = all.find(group);
  if (g == all.end() || !g->second.contains(version)) return nullptr;
  kube::Json list = kube::Json::array();
  for (const InfoPtr& info : g->second.at(version)) {
    list.push_back(ResourceEntry(*info));
    for (const Sub& sub : Subresources(*info)) {
      list.push_back({{"name", info->resource.plural + "/" + sub.name},
                      {"singularName", ""},
                      {"namespaced", info->resource.namespaced},
                      {"kind", sub.kind},
                      {"verbs", sub.verbs}});
      if (sub.group != group) {
        list.back()["group"] = sub.group;
        list.back()["version"] = sub.version;
      }
    }
  }
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group.empty() ? version : group + "/" + version},
          {"resources", std::move(list)}};
}

kube::Json Aggregated(const Registry& registry, bool core, const std::string& version) {
  kube::Json items = kube::Json::array();
  for (const auto& [group, versions] : ByGroup(registry)) {
    if (group.empty() != core) continue;
    kube::Json list = kube::Json::array();
    for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
      kube::Json resources = kube::Json::array();
      for (const InfoPtr& info : it->second) resources.push_back(AggregatedResource(*info));
      list.push_back({{"version", it->first}, {"freshness", "Current"}, {"resources", resources}});
    }
    kube::Json metadata = {{"creationTimestamp", nullptr}};
    if (!group.empty()) metadata["name"] = group;
    items.push_back({{"metadata", std::move(metadata)}, {"versions", std::move(list)}});
  }
  return {{"kind", "APIGroupDiscoveryList"},
          {"apiVersion", "apidiscovery.k8s.io/" + version},
          {"metadata", kube::Json::object()},
          {"items", std::move(items)}};
}

kube::Json VersionInfo() {
  return {{"major", "1"},
          {"minor", "32"},
          {"gitVersion", "v1.32.0+medley-embedded"},
          {"gitCommit", "embedded"},
          {"gitTreeState", "clean"},
          {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", "none"},
          {"compiler", "g++"},
          {"platform", "linux/amd64"}};
}

}  // namespace medley::localcluster::apiserver

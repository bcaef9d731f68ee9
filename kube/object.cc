#include "kube/object.h"

#include "common/base/status.h"
#include "kube/json_access.h"

namespace medley::kube {
namespace {

std::string FieldOf(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// Returns the object json[a][b]; creates it if it is missing or has another type.
Json& Section(Json& json, const char* a, const char* b) {
  if (!json.is_object()) json = Json::object();
  Json& first = json[a];
  if (!first.is_object()) first = Json::object();
  Json& second = first[b];
  if (!second.is_object()) second = Json::object();
  return second;
}

}  // namespace

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string Resource::Path(std::string_view ns, std::string_view name, std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" + version : "/apis/" + group + "/" + version;
  if (namespaced && !ns.empty()) path.append("/namespaces/").append(ns);
  path.append("/").append(plural);
  if (!name.empty()) path.append("/").append(name);
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

namespace resources {
Resource Pods() { return {"", "v1", "pods", "Pod", true}; }
Resource Services() { return {"", "v1", "services", "Service", true}; }
Resource ConfigMaps() { return {"", "v1", "configmaps", "ConfigMap", true}; }
Resource Secrets() { return {"", "v1", "secrets", "Secret", true}; }
Resource Nodes() { return {"", "v1", "nodes", "Node", false}; }
Resource Namespaces() { return {"", "v1", "namespaces", "Namespace", false}; }
Resource ResourceQuotas() { return {"", "v1", "resourcequotas", "ResourceQuota", true}; }
Resource Events() { return {"", "v1", "events", "Event", true}; }
Resource NetworkPolicies() { return {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true}; }
Resource PodDisruptionBudgets() { return {"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true}; }
Resource Leases() { return {"coordination.k8s.io", "v1", "leases", "Lease", true}; }
Resource CustomResourceDefinitions() {
  return {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
}
}  // namespace resources

Object::Object(const Resource& resource, Key key) : Object() {
  json_["apiVersion"] = resource.ApiVersion();
  json_["kind"] = resource.kind;
  Json& metadata = json_["metadata"];
  metadata = Json::object();
  metadata["name"] = std::move(key.name);
  if (resource.namespaced && !key.ns.empty()) metadata["namespace"] = std::move(key.ns);
}

const Json& Object::At(std::string_view pointer) const { return ValueAt(json_, pointer); }

std::string Object::String(std::string_view pointer) const {
  const Json& value = At(pointer);
  return value.is_string() ? value.get<std::string>() : "";
}

int64_t Object::generation() const {
  const Json& value = At("/metadata/generation");
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

std::string Object::label(std::string_view name) const {
  const Json& labels = At("/metadata/labels");
  return labels.is_object() ? FieldOf(labels, std::string(name).c_str()) : "";
}

std::string Object::annotation(std::string_view name) const {
  const Json& annotations = At("/metadata/annotations");
  return annotations.is_object() ? FieldOf(annotations, std::string(name).c_str()) : "";
}

std::vector<OwnerReference> Object::owners() const {
  std::vector<OwnerReference> owners;
  const Json& list = At("/metadata/ownerReferences");
  if (!list.is_array()) return owners;
  for (const Json& item : list) {
    if (!item.is_object()) continue;
    const auto controller = item.find("controller");
    owners.push_back({FieldOf(item, "apiVersion"), FieldOf(item, "kind"), FieldOf(item, "name"), FieldOf(item, "uid"),
                      controller != item.end() && controller->is_boolean() && controller->get<bool>()});
  }
  return owners;
}

std::optional<OwnerReference> Object::controller() const {
  for (OwnerReference& owner : owners()) {
    if (owner.controller) return std::move(owner);
  }
  return std::nullopt;
}

void Object::SetLabel(std::string_view name, std::string_view value) {
  Section(json_, "metadata", "labels")[std::string(name)] = value;
}

void Object::SetAnnotation(std::string_view name, std::string_view value) {
  Section(json_, "metadata", "annotations")[std::string(name)] = value;
}

absl::Status Object::SetController(const Object& owner) {
  if (const auto now = controller(); now && now->uid != owner.uid()) {
    return base::AlreadyExists("setting {} '{}' as controller of {} '{}': it is already controlled by {} '{}'",
                               owner.kind(), owner.key().ToString(), kind(), key().ToString(), now->kind, now->name);
  }
  if (!json_["metadata"].is_object()) json_["metadata"] = Json::object();
  Json& list = json_["metadata"]["ownerReferences"];
  if (!list.is_array()) list = Json::array();
  Json reference = {{"apiVersion", owner.api_version()},
                    {"kind", owner.kind()},
                    {"name", owner.key().name},
                    {"uid", owner.uid()},
                    {"controller", true},
                    {"blockOwnerDeletion", true}};
  for (Json& item : list) {
    if (item.is_object() && FieldOf(item, "uid") == owner.uid()) {
      item = std::move(reference);
      return absl::OkStatus();
    }
  }
  list.push_back(std::move(reference));
  return absl::OkStatus();
}

void MergePatch(Json& target, const Json& patch) { target.merge_patch(patch); }

}  // namespace medley::kube

#include "localcluster/apiserver/registry.h"
#include "kube/json_access.h"

namespace medley::localcluster::apiserver {
namespace {

std::vector<std::string> Texts(const kube::Json& object, const char* name) {
  std::vector<std::string> out;
  const auto it = object.find(name);
  if (it == object.end() || !it->is_array()) return out;
  for (const kube::Json& one : *it) {
    if (one.is_string()) out.push_back(one.get<std::string>());
  }
  return out;
}

// openAPIV3Schema; an empty object where there is none.
kube::Json GivenSchema(const kube::Json& version) {
  if (const auto schema = version.find("schema"); schema != version.end() && schema->is_object()) {
    if (const auto it = schema->find("openAPIV3Schema"); it != schema->end() && it->is_object()) return *it;
  }
  return kube::Json::object();
}

// The same, extended so that it validates a whole object.
kube::Json RootSchema(const kube::Json& version) {
  kube::Json root = GivenSchema(version);
  root["type"] = "object";
  kube::Json& properties = root["properties"];
  if (!properties.is_object()) properties = kube::Json::object();
  properties["apiVersion"] = {{"type", "string"}, {"description", "The versioned schema of this object."}};
  properties["kind"] = {{"type", "string"}, {"description", "The kind of this object."}};
  properties["metadata"] = {{"$ref", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}};
  return root;
}

InfoPtr FromCrd(const kube::Json& crd, const kube::Json& version, const kube::Definitions& definitions) {
  const kube::Json& spec = crd.at("spec");
  const kube::Json& names = spec.at("names");
  auto info = std::make_shared<ResourceInfo>();
  info->builtin = false;
  info->crd = crd.at("metadata").value("name", "");
  info->resource = {kube::GetString(spec, "group"), kube::GetString(version, "name"), kube::GetString(names, "plural"),
                    kube::GetString(names, "kind"), kube::GetString(spec, "scope") != "Cluster"};
  info->singular = kube::GetString(names, "singular");
  info->list_kind = kube::GetString(names, "listKind");
  if (info->list_kind.empty()) info->list_kind = info->resource.kind + "List";
  info->short_names = Texts(names, "shortNames");
  info->categories = Texts(names, "categories");
  info->has_generation = true;
  if (const auto sub = version.find("subresources"); sub != version.end() && sub->is_object()) {
    info->has_status = sub->contains("status");
    if (const auto scale = sub->find("scale"); scale != sub->end() && scale->is_object()) {
      info->has_scale = true;
      info->spec_replicas = kube::GetString(*scale, "specReplicasPath");
      info->status_replicas = kube::GetString(*scale, "statusReplicasPath");
      info->label_selector = kube::GetString(*scale, "labelSelectorPath");
    }
  }
  info->schema_document = RootSchema(version);
  info->schema = kube::Schema(&info->schema_document, &definitions);
  if (auto rules = kube::Rules::Compile(GivenSchema(version)); rules.ok()) {  // ValidateCrd has refused others
    info->rules = std::make_shared<const kube::Rules>(*std::move(rules));
  }
  if (const auto it = version.find("additionalPrinterColumns"); it != version.end()) {
    info->columns = *it;
  }
  return info;
}

}  // namespace

Registry::Registry(const kube::Definitions& definitions) : definitions_(definitions) {
  base::MutexLock lock(mutex_);
  for (InfoPtr& info : BuiltinResources(definitions)) {
    const kube::Resource& r = info->resource;
    infos_[{r.group, r.version, r.plural}] = info;
  }
}

InfoPtr Registry::Find(const std::string& group, const std::string& version, const std::string& plural) const {
  base::MutexLock lock(mutex_);
  const auto it = infos_.find({group, version, plural});
  return it == infos_.end() ? nullptr : it->second;
}

InfoPtr Registry::FindKind(const std::string& group, const std::string& version, const std::string& kind) const {
  base::MutexLock lock(mutex_);
  for (const auto& [id, info] : infos_) {
    const kube::Resource& r = info->resource;
    if (r.group == group && r.version == version && r.kind == kind) return info;
  }
  return nullptr;
}

InfoPtr Registry::FindBucket(const std::string& bucket) const {
  base::MutexLock lock(mutex_);
  for (const auto& [id, info] : infos_) {
    if (info->bucket() == bucket) return info;
  }
  return nullptr;
}

std::vector<InfoPtr> Registry::All() const {
  base::MutexLock lock(mutex_);
  std::vector<InfoPtr> out;
  for (const auto& [id, info] : infos_) out.push_back(info);
  return out;
}

void Registry::SetCrd(const kube::Json& crd) {
  std::vector<InfoPtr> fresh;
  for (const kube::Json& version : crd.at("spec").at("versions")) {
    if (version.value("served", false)) fresh.push_back(FromCrd(crd, version, definitions_));
  }
  RemoveCrd(crd.at("metadata").value("name", ""));
  base::MutexLock lock(mutex_);
  for (InfoPtr& info : fresh) {
    const kube::Resource& r = info->resource;
    infos_[{r.group, r.version, r.plural}] = std::move(info);
  }
}

void Registry::RemoveCrd(const std::string& name) {
  base::MutexLock lock(mutex_);
  std::erase_if(infos_, [&](const auto& entry) { return !entry.second->builtin && entry.second->crd == name; });
}

}  // namespace medley::localcluster::apiserver

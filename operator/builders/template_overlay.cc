#include "operator/builders/template_overlay.h"

#include <map>
#include <string>

#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;

// Merge key of a list field; empty: the list replaces.
std::string MergeKey(const std::string& field) {
  static const std::map<std::string, std::string> keys = {
      {"containers", "name"},       {"initContainers", "name"},
      {"volumes", "name"},          {"env", "name"},
      {"imagePullSecrets", "name"}, {"volumeMounts", "mountPath"},
      {"ports", "containerPort"},   {"hostAliases", "ip"},
  };
  const auto found = keys.find(field);
  return found == keys.end() ? "" : found->second;
}

void MergeObject(Json& base, const Json& overlay);

void MergeList(Json& base, const Json& overlay, const std::string& key) {
  for (const Json& entry : overlay) {
    Json* match = nullptr;
    for (Json& existing : base) {
      if (existing.is_object() && entry.is_object() && existing.contains(key) &&
          entry.contains(key) && existing[key] == entry[key]) {
        match = &existing;
      }
    }
    if (match == nullptr) {
      base.push_back(entry);
    } else {
      MergeObject(*match, entry);
    }
  }
}

void MergeObject(Json& base, const Json& overlay) {
  for (const auto& [field, value] : overlay.items()) {
    if (value.is_null()) {
      base.erase(field);
      continue;
    }
    if (!base.contains(field)) {
      base[field] = value;
      continue;
    }
    Json& target = base[field];
    if (target.is_object() && value.is_object()) {
      MergeObject(target, value);
    } else if (target.is_array() && value.is_array() && field == "tolerations") {
      for (const Json& entry : value) target.push_back(entry);
    } else if (target.is_array() && value.is_array() && !MergeKey(field).empty()) {
      MergeList(target, value, MergeKey(field));
    } else {
      target = value;
    }
  }
}

}  // namespace

Json OverlayPodSpec(Json base, const Json& overlay) {
  if (!overlay.is_object()) return base;
  Json named = overlay;
  if (named.contains("containers") && named["containers"].is_array()) {
    for (Json& container : named["containers"]) {
      if (container.is_object() && !container.contains("name"))
        container["name"] = kWorkerContainer;
    }
  }
  MergeObject(base, named);
  return base;
}

}  // namespace medley::ops

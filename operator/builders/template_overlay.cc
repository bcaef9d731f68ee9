#include "operator/builders/template_overlay.h"

#include <algorithm>
#include <map>
#include <string>

#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr char kDirective[] = "$patch";
constexpr char kRetainKeys[] = "$retainKeys";

// Merge key of a list field; empty: the template's list replaces the pod's list.
std::string MergeKey(const std::string& field) {
  static const std::map<std::string, std::string> keys = {
      {"containers", "name"},
      {"initContainers", "name"},
      {"ephemeralContainers", "name"},
      {"volumes", "name"},
      {"env", "name"},
      {"imagePullSecrets", "name"},
      {"schedulingGates", "name"},
      {"resourceClaims", "name"},
      {"volumeMounts", "mountPath"},
      {"volumeDevices", "devicePath"},
      {"ports", "containerPort"},
      {"hostAliases", "ip"},
      {"topologySpreadConstraints", "topologyKey"},
  };
  const auto found = keys.find(field);
  return found == keys.end() ? "" : found->second;
}

// True for lists whose merged entries keep only the fields of the template's entry.
bool RetainsKeys(const std::string& field) { return field == "volumes" || field == "resourceClaims"; }

std::string Directive(const Json& value) {
  return value.is_object() && value.contains(kDirective) && value[kDirective].is_string()
             ? value[kDirective].get<std::string>()
             : "";
}

// A copy of `value` without directives, which must not reach the pod.
Json WithoutDirectives(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& entry : value) {
      const std::string directive = Directive(entry);
      if (directive == "delete" || (directive == "replace" && entry.size() == 1)) continue;
      list.push_back(WithoutDirectives(entry));
    }
    return list;
  }
  if (!value.is_object()) return value;
  Json object = Json::object();
  for (const auto& [field, inner] : value.items()) {
    if (field.starts_with('$') || inner.is_null() || Directive(inner) == "delete") continue;
    object[field] = WithoutDirectives(inner);
  }
  return object;
}

void MergeObject(Json& base, const Json& overlay);

void MergeEntry(Json& list, const Json& entry, const std::string& key, bool retain) {
  const auto same = [&](const Json& other) {
    return other.is_object() && entry.is_object() && other.contains(key) && entry.contains(key) &&
           other[key] == entry[key];
  };
  const auto match = std::find_if(list.begin(), list.end(), same);
  const std::string directive = Directive(entry);
  if (directive == "delete") {
    if (match != list.end()) list.erase(match);
  } else if (match == list.end()) {
    list.push_back(WithoutDirectives(entry));
  } else if (directive == "replace" || retain) {
    *match = WithoutDirectives(entry);
  } else {
    MergeObject(*match, entry);
  }
}

void MergeList(Json& base, const Json& overlay, const std::string& field) {
  const bool replaces = std::any_of(overlay.begin(), overlay.end(), [](const Json& entry) {
    return Directive(entry) == "replace" && entry.size() == 1;
  });
  const std::string key = MergeKey(field);
  if (replaces || (key.empty() && field != "tolerations")) {
    base = WithoutDirectives(overlay);
    return;
  }
  for (const Json& entry : overlay) {
    if (!key.empty()) {
      MergeEntry(base, entry, key, RetainsKeys(field));
    } else if (std::find(base.begin(), base.end(), entry) == base.end()) {
      base.push_back(WithoutDirectives(entry));
    }
  }
}

void MergeObject(Json& base, const Json& overlay) {
  if (Directive(overlay) == "replace") {
    base = WithoutDirectives(overlay);
    return;
  }
  if (overlay.contains(kRetainKeys) && overlay[kRetainKeys].is_array()) {
    const Json& keep = overlay[kRetainKeys];
    Json kept = Json::object();
    for (const auto& [field, value] : base.items()) {
      if (std::find(keep.begin(), keep.end(), field) != keep.end()) kept[field] = value;
    }
    base = std::move(kept);
  }
  for (const auto& [field, value] : overlay.items()) {
    if (field.starts_with('$')) continue;
    if (value.is_null() || Directive(value) == "delete") {
      base.erase(field);
    } else if (!base.contains(field)) {
      base[field] = WithoutDirectives(value);
    } else if (base[field].is_object() && value.is_object()) {
      MergeObject(base[field], value);
    } else if (base[field].is_array() && value.is_array()) {
      MergeList(base[field], value, field);
    } else {
      base[field] = WithoutDirectives(value);
    }
  }
}

const Json* Worker(const Json& spec) {
  const auto list = spec.find("containers");
  if (list == spec.end() || !list->is_array()) return nullptr;
  for (const Json& container : *list) {
    if (container.is_object() && container.value("name", Json()) == kWorkerContainer) return &container;
  }
  return nullptr;
}

}  // namespace

Json OverlayPodSpec(Json base, const Json& overlay) {
  if (!overlay.is_object()) return base;
  const Json* worker = Worker(base);
  const Json original = worker != nullptr ? *worker : Json();
  Json named = overlay;
  if (named.contains("containers") && named["containers"].is_array()) {
    for (Json& container : named["containers"]) {
      const bool only_directive = Directive(container) == "replace" && container.size() == 1;
      if (container.is_object() && !container.contains("name") && !only_directive) container["name"] = kWorkerContainer;
    }
  }
  MergeObject(base, named);
  if (!original.is_null() && Worker(base) == nullptr) {
    if (!base["containers"].is_array()) base["containers"] = Json::array();
    base["containers"].insert(base["containers"].begin(), original);
  }
  return base;
}

}  // namespace medley::ops

#include "localcluster/apiserver/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/status.h"
#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr char kDelete[] = "$deleteFromPrimitiveList/";
constexpr char kOrder[] = "$setElementOrder/";

bool IsDirective(const std::string& name) { return name.starts_with("$"); }

std::string PatchMode(const kube::Json& patch) {
  const auto it = patch.find("$patch");
  return it != patch.end() && it->is_string() ? it->get<std::string>() : "";
}

kube::Json StripDirectives(kube::Json value) {
  if (value.is_array()) {
    kube::Json out = kube::Json::array();
    for (kube::Json& item : value) {
      if (item.is_object() && !PatchMode(item).empty()) continue;
      out.push_back(StripDirectives(std::move(item)));
    }
    return out;
  }
  if (!value.is_object()) return value;
  kube::Json out = kube::Json::object();
  for (auto& [name, field] : value.items()) {
    if (!IsDirective(name) && !field.is_null()) out[name] = StripDirectives(field);
  }
  return out;
}

absl::StatusOr<kube::Json> MergeMap(kube::Json target, const kube::Json& patch, const kube::Schema& schema);

// Finds the first item with the given value of `key`, or the end.
auto FindKeyed(kube::Json& list, const std::string& key, const kube::Json& value) {
  return std::find_if(list.begin(), list.end(), [&](const kube::Json& item) {
    return item.is_object() && item.contains(key) && item[key] == value;
  });
}

absl::StatusOr<kube::Json> MergeKeyed(kube::Json target, const kube::Json& patch, const std::string& key,
                                      const kube::Schema& items) {
  for (const kube::Json& item : patch) {
    if (item.is_object() && PatchMode(item) == "replace") return StripDirectives(patch);
  }
  for (const kube::Json& item : patch) {
    if (!item.is_object() || !item.contains(key)) {
      return BadRequest(fmt::format("map: {} does not contain declared merge key: {}", kube::Dump(item), key));
    }
    const auto at = FindKeyed(target, key, item[key]);
    if (PatchMode(item) == "delete") {
      if (at != target.end()) target.erase(at);
    } else if (at == target.end()) {
      target.push_back(StripDirectives(item));
    } else {
      MEDLEY_ASSIGN_OR_RETURN(*at, MergeMap(*at, item, items));
    }
  }
  return target;
}

// Sorts the items that `order` names into that order; the others follow in their old order.
void Reorder(kube::Json* list, const kube::Json& order, const std::string& key) {
  if (!order.is_array() || !list->is_array()) return;
  const auto rank = [&](const kube::Json& item) {
    for (size_t i = 0; i < order.size(); ++i) {
      const bool same = key.empty() ? order[i] == item
                                    : order[i].is_object() && item.is_object() && order[i].contains(key) &&
                                          item.contains(key) && order[i][key] == item[key];
      if (same) return i;
    }
    return order.size();
  };
  std::stable_sort(list->begin(), list->end(),
                   [&](const kube::Json& a, const kube::Json& b) { return rank(a) < rank(b); });
}

absl::StatusOr<kube::Json> MergeList(kube::Json target, const kube::Json& patch, const kube::Schema& schema) {
  if (!schema.patch_merges() || !target.is_array()) return StripDirectives(patch);
  if (const std::string key = schema.patch_merge_key(); !key.empty()) {
    return MergeKeyed(std::move(target), patch, key, schema.Items());
  }
  for (const kube::Json& item : patch) {
    if (std::find(target.begin(), target.end(), item) == target.end()) target.push_back(item);
  }
  return target;
}

void DeletePrimitives(kube::Json* target, const std::string& name, const kube::Json& values) {
  const auto list = target->find(name);
  if (list == target->end() || !list->is_array() || !values.is_array()) return;
  kube::Json kept = kube::Json::array();
  for (const kube::Json& item : *list) {
    if (std::find(values.begin(), values.end(), item) == values.end()) kept.push_back(item);
  }
  *list = std::move(kept);
}

void RetainKeys(kube::Json* target, const kube::Json& keys) {
  if (!keys.is_array()) return;
  for (auto it = target->begin(); it != target->end();) {
    const bool keep = std::find(keys.begin(), keys.end(), kube::Json(it.key())) != keys.end();
    it = keep ? std::next(it) : target->erase(it);
  }
}

absl::StatusOr<kube::Json> MergeMap(kube::Json target, const kube::Json& patch, const kube::Schema& schema) {
  if (!target.is_object()) target = kube::Json::object();
  const std::string mode = PatchMode(patch);
  if (mode == "replace") return StripDirectives(patch);
  if (mode == "delete") return kube::Json::object();
  if (!mode.empty() && mode != "merge") {
    return BadRequest(fmt::format("Unknown patch type found: {}", mode));
  }
  if (const auto retain = patch.find("$retainKeys"); retain != patch.end()) {
    RetainKeys(&target, *retain);
  }
  for (const auto& [name, value] : patch.items()) {
    if (name.starts_with(kDelete)) DeletePrimitives(&target, name.substr(sizeof(kDelete) - 1), value);
    if (IsDirective(name)) continue;
    const kube::Schema field = schema.Field(name);
    const auto it = target.find(name);
    if (value.is_null()) {
      target.erase(name);
    } else if (value.is_object()) {
      MEDLEY_ASSIGN_OR_RETURN(target[name], MergeMap(it == target.end() ? kube::Json::object() : *it, value, field));
    } else if (value.is_array()) {
      MEDLEY_ASSIGN_OR_RETURN(target[name], MergeList(it == target.end() ? kube::Json::array() : *it, value, field));
    } else {
      target[name] = value;
    }
  }
  for (const auto& [name, value] : patch.items()) {
    if (!name.starts_with(kOrder)) continue;
    const std::string list = name.substr(sizeof(kOrder) - 1);
    const auto it = target.find(list);
    if (it != target.end()) Reorder(&*it, value, schema.Field(list).patch_merge_key());
  }
  return target;
}

}  // namespace

absl::StatusOr<kube::Json> JsonPatch(const kube::Json& document, const kube::Json& patch) {
  if (!patch.is_array()) return BadRequest("a JSON patch must be a list of operations");
  if (patch.size() > 10000) return BadRequest("a JSON patch may have at most 10000 operations");
  try {
    return document.patch(patch);
  } catch (const kube::Json::parse_error& e) {
    return BadRequest(fmt::format("malformed JSON patch: {}", e.what()));
  } catch (const kube::Json::exception& e) {
    return ApiError(422, "Invalid",
                    fmt::format("the server rejected our request due to an error in our request: {}", e.what()));
  }
}

absl::StatusOr<kube::Json> StrategicMergePatch(const kube::Json& document, const kube::Json& patch,
                                               const kube::Schema& schema) {
  if (!patch.is_object()) return BadRequest("a strategic merge patch must be an object");
  return MergeMap(document, patch, schema);
}

}  // namespace medley::localcluster::apiserver

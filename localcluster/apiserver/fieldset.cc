#include "localcluster/apiserver/fieldset.h"

namespace medley::kube::apiserver {
namespace {

bool Granular(const Json& value, const Schema& schema) { return value.is_object() && !schema.map_atomic(); }

FieldPath Plus(const FieldPath& path, std::string element) {
  FieldPath out = path;
  out.push_back(std::move(element));
  return out;
}

const Json* FindItem(const Json& list, const Schema& schema, const std::string& key) {
  for (const Json& item : list) {
    if (ItemKey(item, schema) == key) return &item;
  }
  return nullptr;
}

void Collect(const Json& value, const Schema& schema, const FieldPath& path, FieldSet* out) {
  if (Granular(value, schema)) {
    if (value.empty() && !path.empty()) out->insert(path);
    for (const auto& [name, field] : value.items()) {
      Collect(field, schema.Field(name), Plus(path, "f:" + name), out);
    }
    return;
  }
  if (value.is_array() && schema.list_type() == Schema::ListType::kMap) {
    if (value.empty()) out->insert(path);
    for (const Json& item : value) {
      const FieldPath at = Plus(path, ItemKey(item, schema));
      out->insert(at);
      Collect(item, schema.Items(), at, out);
    }
    return;
  }
  if (value.is_array() && schema.list_type() == Schema::ListType::kSet) {
    if (value.empty()) out->insert(path);
    for (const Json& item : value) out->insert(Plus(path, "v:" + Dump(item)));
    return;
  }
  out->insert(path);
}

void Diff(const Json& a, const Json& b, const Schema& schema, const FieldPath& path, FieldDiff* out);

void DiffMaps(const Json& a, const Json& b, const Schema& schema, const FieldPath& path, FieldDiff* out) {
  for (const auto& [name, field] : b.items()) {
    const FieldPath at = Plus(path, "f:" + name);
    if (const auto it = a.find(name); it != a.end()) {
      Diff(*it, field, schema.Field(name), at, out);
    } else {
      Collect(field, schema.Field(name), at, &out->changed);
    }
  }
  for (const auto& [name, field] : a.items()) {
    if (!b.contains(name)) Collect(field, schema.Field(name), Plus(path, "f:" + name), &out->removed);
  }
}

void DiffKeyed(const Json& a, const Json& b, const Schema& schema, const FieldPath& path, FieldDiff* out) {
  for (const Json& item : b) {
    const std::string key = ItemKey(item, schema);
    const FieldPath at = Plus(path, key);
    if (const Json* old = FindItem(a, schema, key)) {
      Diff(*old, item, schema.Items(), at, out);
    } else {
      out->changed.insert(at);
      Collect(item, schema.Items(), at, &out->changed);
    }
  }
  for (const Json& item : a) {
    const std::string key = ItemKey(item, schema);
    if (FindItem(b, schema, key) != nullptr) continue;
    const FieldPath at = Plus(path, key);
    out->removed.insert(at);
    Collect(item, schema.Items(), at, &out->removed);
  }
}

void Diff(const Json& a, const Json& b, const Schema& schema, const FieldPath& path, FieldDiff* out) {
  if (a == b) return;
  if (Granular(a, schema) && Granular(b, schema)) return DiffMaps(a, b, schema, path, out);
  const bool lists = a.is_array() && b.is_array();
  if (lists && schema.list_type() == Schema::ListType::kMap) {
    return DiffKeyed(a, b, schema, path, out);
  }
  FieldSet old;
  FieldSet now;
  Collect(a, schema, path, &old);
  Collect(b, schema, path, &now);
  const bool atomic = now.size() == 1 && now.contains(path);
  for (const FieldPath& p : now) {
    if (atomic || !old.contains(p)) out->changed.insert(p);
  }
  for (const FieldPath& p : old) {
    if (!now.contains(p)) out->removed.insert(p);
  }
}

void Parse(const Json& fields, const FieldPath& path, FieldSet* out) {
  if (!fields.is_object()) return;
  for (const auto& [name, child] : fields.items()) {
    if (name == ".") {
      if (!path.empty()) out->insert(path);  // the object as a whole is no field
    } else if (child.is_object() && child.empty()) {
      out->insert(Plus(path, name));
    } else {
      Parse(child, Plus(path, name), out);
    }
  }
}

bool IsKeyOf(const Schema& list, const std::string& element) {
  for (const std::string& key : list.list_map_keys()) {
    if (element == "f:" + key) return true;
  }
  return false;
}

void Remove(Json* value, const Schema& schema, const FieldPath& path, size_t i) {
  if (i >= path.size()) return;
  const std::string& element = path[i];
  const bool last = i + 1 == path.size();
  if (element.starts_with("f:")) {
    if (!value->is_object()) return;
    const std::string name = element.substr(2);
    const auto it = value->find(name);
    if (it == value->end()) return;
    if (last) {
      value->erase(it);
      return;
    }
    const bool was_empty = it->empty();
    Remove(&*it, schema.Field(name), path, i + 1);
    if (!was_empty && it->is_structured() && it->empty()) value->erase(it);
    return;
  }
  if (!value->is_array()) return;
  for (auto it = value->begin(); it != value->end(); ++it) {
    const bool hit = element.starts_with("v:") ? "v:" + Dump(*it) == element : ItemKey(*it, schema) == element;
    if (!hit) continue;
    if (last) {
      value->erase(it);
    } else if (i + 2 < path.size() || !IsKeyOf(schema, path[i + 1])) {
      Remove(&*it, schema.Items(), path, i + 1);  // an item keeps its key fields
    }
    return;
  }
}

}  // namespace

std::string ItemKey(const Json& item, const Schema& list) {
  Json key = Json::object();
  if (item.is_object()) {
    const Schema items = list.Items();
    for (const std::string& name : list.list_map_keys()) {
      if (const auto it = item.find(name); it != item.end()) {
        key[name] = *it;
      } else if (const Json* fallback = items.Field(name).Default()) {
        key[name] = *fallback;
      }
    }
  }
  return "k:" + Dump(key);
}

FieldSet ToFieldSet(const Json& value, const Schema& schema) {
  FieldSet out;
  Collect(value, schema, {}, &out);
  return out;
}

FieldDiff DiffFields(const Json& a, const Json& b, const Schema& schema) {
  FieldDiff out;
  Diff(a, b, schema, {}, &out);
  return out;
}

Json ToFieldsV1(const FieldSet& set) {
  Json root = Json::object();
  for (const FieldPath& path : set) {  // sorted: a container comes before its content
    Json* node = &root;
    for (size_t i = 0; i < path.size(); ++i) {
      const bool parent_is_member =
          i > 0 && node->empty() &&
          set.contains(FieldPath(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i)));
      if (parent_is_member) (*node)["."] = Json::object();
      Json& next = (*node)[path[i]];
      if (next.is_null()) next = Json::object();
      node = &next;
    }
  }
  return root;
}

FieldSet FromFieldsV1(const Json& fields) {
  FieldSet out;
  Parse(fields, {}, &out);
  return out;
}

std::string PathText(const FieldPath& path) {
  std::string out;
  for (const std::string& element : path) {
    if (element.starts_with("f:")) {
      out += "." + element.substr(2);
    } else if (element.starts_with("v:")) {
      out += "[=" + element.substr(2) + "]";
    } else {
      const Json key = Json::parse(element.substr(2), nullptr, false);
      std::string inside;
      if (key.is_object()) {
        for (const auto& [name, value] : key.items()) {
          inside += (inside.empty() ? "" : ",") + name + "=" + Dump(value);
        }
      }
      out += "[" + inside + "]";
    }
  }
  return out;
}

Json MergeByStructure(const Json& live, const Json& config, const Schema& schema) {
  if (Granular(config, schema) && Granular(live, schema)) {
    Json out = live;
    for (const auto& [name, field] : config.items()) {
      const auto it = out.find(name);
      out[name] = it == out.end() ? field : MergeByStructure(*it, field, schema.Field(name));
    }
    return out;
  }
  if (!config.is_array() || !live.is_array()) return config;
  if (schema.list_type() == Schema::ListType::kSet) {
    Json out = live;
    for (const Json& item : config) {
      if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
    }
    return out;
  }
  if (schema.list_type() != Schema::ListType::kMap) return config;
  Json out = live;
  for (const Json& item : config) {
    const std::string key = ItemKey(item, schema);
    bool found = false;
    for (Json& old : out) {
      if (ItemKey(old, schema) != key) continue;
      old = MergeByStructure(old, item, schema.Items());
      found = true;
      break;
    }
    if (!found) out.push_back(item);
  }
  return out;
}

void RemovePath(Json* value, const Schema& schema, const FieldPath& path) { Remove(value, schema, path, 0); }

}  // namespace medley::kube::apiserver

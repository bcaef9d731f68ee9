#include "localcluster/apiserver/fieldset.h"

namespace medley::localcluster::apiserver {
namespace {

bool Granular(const kube::Json& value, const kube::Schema& schema) { return value.is_object() && !schema.map_atomic(); }

FieldPath Plus(const FieldPath& path, std::string element) {
  FieldPath out = path;
  out.push_back(std::move(element));
  return out;
}

const kube::Json* FindItem(const kube::Json& list, const kube::Schema& schema, const std::string& key) {
  for (const kube::Json& item : list) {
    if (ItemKey(item, schema) == key) return &item;
  }
  return nullptr;
}

void Collect(const kube::Json& value, const kube::Schema& schema, const FieldPath& path, FieldSet* out) {
  if (Granular(value, schema)) {
    if (value.empty() && !path.empty()) out->insert(path);
    for (const auto& [name, field] : value.items()) {
      Collect(field, schema.Field(name), Plus(path, "f:" + name), out);
    }
    return;
  }
  if (value.is_array() && schema.list_type() == kube::Schema::ListType::kMap) {
    if (value.empty()) out->insert(path);
    for (const kube::Json& item : value) {
      const FieldPath at = Plus(path, ItemKey(item, schema));
      out->insert(at);
      Collect(item, schema.Items(), at, out);
    }
    return;
  }
  if (value.is_array() && schema.list_type() == kube::Schema::ListType::kSet) {
    if (value.empty()) out->insert(path);
    for (const kube::Json& item : value) out->insert(Plus(path, "v:" + kube::Dump(item)));
    return;
  }
  out->insert(path);
}

void Diff(const kube::Json& a, const kube::Json& b, const kube::Schema& schema, const FieldPath& path, FieldDiff* out);

void DiffMaps(const kube::Json& a, const kube::Json& b, const kube::Schema& schema, const FieldPath& path,
              FieldDiff* out) {
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

void DiffKeyed(const kube::Json& a, const kube::Json& b, const kube::Schema& schema, const FieldPath& path,
               FieldDiff* out) {
  for (const kube::Json& item : b) {
    const std::string key = ItemKey(item, schema);
    const FieldPath at = Plus(path, key);
    if (const kube::Json* old = FindItem(a, schema, key)) {
      Diff(*old, item, schema.Items(), at, out);
    } else {
      out->changed.insert(at);
      Collect(item, schema.Items(), at, &out->changed);
    }
  }
  for (const kube::Json& item : a) {
    const std::string key = ItemKey(item, schema);
    if (FindItem(b, schema, key) != nullptr) continue;
    const FieldPath at = Plus(path, key);
    out->removed.insert(at);
    Collect(item, schema.Items(), at, &out->removed);
  }
}

void Diff(const kube::Json& a, const kube::Json& b, const kube::Schema& schema, const FieldPath& path, FieldDiff* out) {
  if (a == b) return;
  if (Granular(a, schema) && Granular(b, schema)) return DiffMaps(a, b, schema, path, out);
  const bool lists = a.is_array() && b.is_array();
  if (lists && schema.list_type() == kube::Schema::ListType::kMap) {
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

void Parse(const kube::Json& fields, const FieldPath& path, FieldSet* out) {
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

bool IsKeyOf(const kube::Schema& list, const std::string& element) {
  for (const std::string& key : list.list_map_keys()) {
    if (element == "f:" + key) return true;
  }
  return false;
}

void Remove(kube::Json* value, const kube::Schema& schema, const FieldPath& path, size_t i) {
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
    const bool hit = element.starts_with("v:") ? "v:" + kube::Dump(*it) == element : ItemKey(*it, schema) == element;
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

std::string ItemKey(const kube::Json& item, const kube::Schema& list) {
  kube::Json key = kube::Json::object();
  if (item.is_object()) {
    const kube::Schema items = list.Items();
    for (const std::string& name : list.list_map_keys()) {
      if (const auto it = item.find(name); it != item.end()) {
        key[name] = *it;
      } else if (const kube::Json* fallback = items.Field(name).Default()) {
        key[name] = *fallback;
      }
    }
  }
  return "k:" + kube::Dump(key);
}

FieldSet ToFieldSet(const kube::Json& value, const kube::Schema& schema) {
  FieldSet out;
  Collect(value, schema, {}, &out);
  return out;
}

FieldDiff DiffFields(const kube::Json& a, const kube::Json& b, const kube::Schema& schema) {
  FieldDiff out;
  Diff(a, b, schema, {}, &out);
  return out;
}

kube::Json ToFieldsV1(const FieldSet& set) {
  kube::Json root = kube::Json::object();
  for (const FieldPath& path : set) {  // sorted: a container comes before its content
    kube::Json* node = &root;
    for (size_t i = 0; i < path.size(); ++i) {
      const bool parent_is_member =
          i > 0 && node->empty() &&
          set.contains(FieldPath(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i)));
      if (parent_is_member) (*node)["."] = kube::Json::object();
      kube::Json& next = (*node)[path[i]];
      if (next.is_null()) next = kube::Json::object();
      node = &next;
    }
  }
  return root;
}

FieldSet FromFieldsV1(const kube::Json& fields) {
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
      const kube::Json key = kube::Json::parse(element.substr(2), nullptr, false);
      std::string inside;
      if (key.is_object()) {
        for (const auto& [name, value] : key.items()) {
          inside += (inside.empty() ? "" : ",") + name + "=" + kube::Dump(value);
        }
      }
      out += "[" + inside + "]";
    }
  }
  return out;
}

kube::Json MergeByStructure(const kube::Json& live, const kube::Json& config, const kube::Schema& schema) {
  if (Granular(config, schema) && Granular(live, schema)) {
    kube::Json out = live;
    for (const auto& [name, field] : config.items()) {
      const auto it = out.find(name);
      out[name] = it == out.end() ? field : MergeByStructure(*it, field, schema.Field(name));
    }
    return out;
  }
  if (!config.is_array() || !live.is_array()) return config;
  if (schema.list_type() == kube::Schema::ListType::kSet) {
    kube::Json out = live;
    for (const kube::Json& item : config) {
      if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
    }
    return out;
  }
  if (schema.list_type() != kube::Schema::ListType::kMap) return config;
  kube::Json out = live;
  for (const kube::Json& item : config) {
    const std::string key = ItemKey(item, schema);
    bool found = false;
    for (kube::Json& old : out) {
      if (ItemKey(old, schema) != key) continue;
      old = MergeByStructure(old, item, schema.Items());
      found = true;
      break;
    }
    if (!found) out.push_back(item);
  }
  return out;
}

void RemovePath(kube::Json* value, const kube::Schema& schema, const FieldPath& path) {
  Remove(value, schema, path, 0);
}

}  // namespace medley::localcluster::apiserver

#include "kube/schema/schema.h"

namespace medley::kube {

Schema Definitions::Find(std::string_view name) const {
  const auto it = all_.find(std::string(name));
  return it == all_.end() ? Schema() : Schema(&*it, this);
}

Schema::Schema(const Json* node, const Definitions* definitions) : node_(node), definitions_(definitions) {
  // Built-in definitions refer to one another; a chain of references has at most two steps.
  for (int i = 0; i < 4 && node_ != nullptr && node_->is_object() && definitions_ != nullptr; ++i) {
    const auto ref = node_->find("$ref");
    if (ref == node_->end() || !ref->is_string()) break;
    ref_ = ref->get_ref<const std::string&>();
    const auto target = definitions_->all().find(std::string(ref_));
    node_ = target == definitions_->all().end() ? nullptr : &*target;
  }
  if (node_ != nullptr && !node_->is_object()) node_ = nullptr;
}

std::string_view Schema::type() const {
  if (node_ == nullptr) return "";
  const auto it = node_->find("type");
  return it != node_->end() && it->is_string() ? std::string_view(it->get_ref<const std::string&>())
                                               : std::string_view();
}

Schema Schema::Field(std::string_view name, bool* known) const {
  bool ignored = false;
  bool& found = known == nullptr ? ignored : *known;
  found = true;
  if (node_ == nullptr) return {};
  if (const auto properties = node_->find("properties"); properties != node_->end() && properties->is_object()) {
    if (const auto it = properties->find(std::string(name)); it != properties->end()) return Sub(*it);
  }
  if (const auto it = node_->find("additionalProperties"); it != node_->end()) {
    if (it->is_object()) return Sub(*it);
    if (it->is_boolean() && it->get<bool>()) return {};
  }
  found = preserve_unknown() || untyped() ||
          (type() == "object" && !node_->contains("properties") && definitions_ != nullptr &&
           !ref_.empty());  // types such as FieldsV1 allow any object
  return {};
}

Schema Schema::Items() const {
  if (node_ == nullptr) return {};
  const auto it = node_->find("items");
  return it == node_->end() ? Schema() : Sub(*it);
}

bool Schema::Flag(std::string_view name) const {
  if (node_ == nullptr) return false;
  const auto it = node_->find(std::string(name));
  return it != node_->end() && it->is_boolean() && it->get<bool>();
}

bool Schema::int_or_string() const {
  return Flag("x-kubernetes-int-or-string") ||
         (node_ != nullptr && node_->contains("format") && (*node_)["format"] == "int-or-string");
}

bool Schema::untyped() const {
  return node_ == nullptr || (type().empty() && !node_->contains("properties") &&
                              !node_->contains("additionalProperties") && !int_or_string());
}

bool Schema::map_atomic() const {
  if (node_ == nullptr) return false;
  const auto it = node_->find("x-kubernetes-map-type");
  return it != node_->end() && *it == "atomic";
}

Schema::ListType Schema::list_type() const {
  if (node_ != nullptr) {
    const auto it = node_->find("x-kubernetes-list-type");
    if (it != node_->end() && *it == "map" && !list_map_keys().empty()) return ListType::kMap;
    if (it != node_->end() && *it == "set") return ListType::kSet;
  }
  return ListType::kAtomic;
}

std::vector<std::string> Schema::list_map_keys() const {
  std::vector<std::string> keys;
  if (node_ == nullptr) return keys;
  const auto it = node_->find("x-kubernetes-list-map-keys");
  if (it == node_->end() || !it->is_array()) return keys;
  for (const Json& key : *it) {
    if (key.is_string()) keys.push_back(key.get<std::string>());
  }
  return keys;
}

std::string Schema::patch_merge_key() const {
  if (node_ == nullptr || !patch_merges()) return "";
  const auto it = node_->find("x-kubernetes-patch-merge-key");
  return it != node_->end() && it->is_string() ? it->get<std::string>() : "";
}

bool Schema::patch_merges() const {
  if (node_ == nullptr) return false;
  const auto it = node_->find("x-kubernetes-patch-strategy");
  return it != node_->end() && it->is_string() && it->get_ref<const std::string&>().find("merge") != std::string::npos;
}

const Json* Schema::Default() const {
  if (node_ == nullptr) return nullptr;
  const auto it = node_->find("default");
  return it == node_->end() ? nullptr : &*it;
}

}  // namespace medley::kube

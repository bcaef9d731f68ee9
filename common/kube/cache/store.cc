#include "common/kube/cache/store.h"

#include "common/base/status.h"

namespace medley::kube {

ObjectPtr Store::Get(const Key& key) const {
  base::MutexLock lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

std::vector<ObjectPtr> Store::List(std::string_view ns) const {
  std::vector<ObjectPtr> out;
  base::MutexLock lock(mutex_);
  auto it = ns.empty() ? objects_.begin() : objects_.lower_bound({std::string(ns), ""});
  for (; it != objects_.end() && (ns.empty() || it->first.ns == ns); ++it) out.push_back(it->second);
  return out;
}

std::vector<Key> Store::Keys() const {
  std::vector<Key> out;
  base::MutexLock lock(mutex_);
  out.reserve(objects_.size());
  for (const auto& [key, object] : objects_) out.push_back(key);
  return out;
}

size_t Store::Size() const {
  base::MutexLock lock(mutex_);
  return objects_.size();
}

absl::Status Store::AddIndex(const std::string& name, IndexFunction function) {
  base::MutexLock lock(mutex_);
  if (indices_.contains(name)) return base::AlreadyExists("add index '{}': it exists", name);
  Index& index = indices_[name];
  index.function = std::move(function);
  for (const auto& [key, object] : objects_) {
    for (const std::string& value : index.function(*object)) index.keys[value].insert(key);
  }
  return absl::OkStatus();
}

std::vector<ObjectPtr> Store::ByIndex(const std::string& name, const std::string& value) const {
  std::vector<ObjectPtr> out;
  base::MutexLock lock(mutex_);
  const auto index = indices_.find(name);
  if (index == indices_.end()) return out;
  const auto keys = index->second.keys.find(value);
  if (keys == index->second.keys.end()) return out;
  for (const Key& key : keys->second) out.push_back(objects_.at(key));
  return out;
}

std::string Store::resource_version() const {
  base::MutexLock lock(mutex_);
  return resource_version_;
}

ObjectPtr Store::PutLocked(ObjectPtr object) {
  const Key key = object->key();
  ObjectPtr before = EraseLocked(key);
  for (auto& [name, index] : indices_) {
    for (const std::string& value : index.function(*object)) index.keys[value].insert(key);
  }
  objects_[key] = std::move(object);
  return before;
}

ObjectPtr Store::EraseLocked(const Key& key) {
  const auto node = objects_.extract(key);
  if (node.empty()) return nullptr;
  for (auto& [name, index] : indices_) {
    for (const std::string& value : index.function(*node.mapped())) {
      const auto keys = index.keys.find(value);
      if (keys == index.keys.end()) continue;
      keys->second.erase(key);
      if (keys->second.empty()) index.keys.erase(keys);
    }
  }
  return node.mapped();
}

ObjectPtr Store::Put(ObjectPtr object) {
  base::MutexLock lock(mutex_);
  return PutLocked(std::move(object));
}

ObjectPtr Store::Erase(const Key& key) {
  base::MutexLock lock(mutex_);
  return EraseLocked(key);
}

Store::Replaced Store::Replace(const std::vector<ObjectPtr>& objects,
                               const std::string& resource_version) {
  Replaced out;
  base::MutexLock lock(mutex_);
  std::set<Key> listed;
  for (const ObjectPtr& object : objects) listed.insert(object->key());
  std::vector<Key> gone;
  for (const auto& [key, object] : objects_) {
    if (!listed.contains(key)) gone.push_back(key);
  }
  for (const Key& key : gone) out.vanished.push_back(EraseLocked(key));
  for (const ObjectPtr& object : objects) out.put.emplace_back(PutLocked(object), object);
  resource_version_ = resource_version;
  return out;
}

void Store::SetResourceVersion(const std::string& resource_version) {
  base::MutexLock lock(mutex_);
  resource_version_ = resource_version;
}

}  // namespace medley::kube

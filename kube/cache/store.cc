#include "kube/cache/store.h"

#include <optional>

#include "common/base/status.h"

namespace medley::kube {

Store::Kept::Kept(const ObjectPtr& object, bool packed) : uid_(object->uid()) {
  if (packed) {
    packed_ = std::make_shared<const Packed>(object->json());
  } else {
    object_ = object;
  }
}

ObjectPtr Store::Kept::Get() const {
  return object_ != nullptr ? object_ : std::make_shared<const Object>(packed_->Unpack());
}

std::vector<ObjectPtr> Store::Unpacked(const std::vector<Kept>& all) {
  std::vector<ObjectPtr> out;
  out.reserve(all.size());
  for (const Kept& kept : all) out.push_back(kept.Get());
  return out;
}

ObjectPtr Store::Get(const Key& key) const {
  std::optional<Kept> found;
  {
    base::MutexLock lock(mutex_);
    const auto it = objects_.find(key);
    if (it == objects_.end()) return nullptr;
    found = it->second;
  }
  return found->Get();
}

std::vector<ObjectPtr> Store::List(std::string_view ns) const {
  std::vector<Kept> found;
  {
    base::MutexLock lock(mutex_);
    auto it = ns.empty() ? objects_.begin() : objects_.lower_bound({std::string(ns), ""});
    for (; it != objects_.end() && (ns.empty() || it->first.ns == ns); ++it) found.push_back(it->second);
  }
  return Unpacked(found);
}

std::string Store::UidOf(const Key& key) const {
  base::MutexLock lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? "" : it->second.uid();
}

std::vector<Key> Store::Keys() const {
  std::vector<Key> out;
  base::MutexLock lock(mutex_);
  out.reserve(objects_.size());
  for (const auto& [key, kept] : objects_) out.push_back(key);
  return out;
}

size_t Store::Size() const {
  base::MutexLock lock(mutex_);
  return objects_.size();
}

absl::Status Store::AddIndex(const std::string& name, IndexFunction function) {
  base::MutexLock lock(mutex_);
  if (indices_.contains(name)) return base::AlreadyExists("adding index '{}': it already exists", name);
  Index& index = indices_[name];
  index.function = std::move(function);
  for (const auto& [key, kept] : objects_) {
    for (const std::string& value : index.function(*kept.Get())) index.keys[value].insert(key);
  }
  return absl::OkStatus();
}

std::vector<ObjectPtr> Store::ByIndex(const std::string& name, const std::string& value) const {
  std::vector<Kept> found;
  {
    base::MutexLock lock(mutex_);
    const auto index = indices_.find(name);
    if (index == indices_.end()) return {};
    const auto keys = index->second.keys.find(value);
    if (keys == index->second.keys.end()) return {};
    for (const Key& key : keys->second) found.push_back(objects_.at(key));
  }
  return Unpacked(found);
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
  objects_.emplace(key, Kept(object, packed_));
  return before;
}

ObjectPtr Store::EraseLocked(const Key& key) {
  const auto node = objects_.extract(key);
  if (node.empty()) return nullptr;
  ObjectPtr last = node.mapped().Get();
  for (auto& [name, index] : indices_) {
    for (const std::string& value : index.function(*last)) {
      const auto keys = index.keys.find(value);
      if (keys == index.keys.end()) continue;
      keys->second.erase(key);
      if (keys->second.empty()) index.keys.erase(keys);
    }
  }
  return last;
}

ObjectPtr Store::Put(ObjectPtr object) {
  base::MutexLock lock(mutex_);
  return PutLocked(std::move(object));
}

ObjectPtr Store::Erase(const Key& key) {
  base::MutexLock lock(mutex_);
  return EraseLocked(key);
}

Store::Replaced Store::Replace(const std::vector<ObjectPtr>& objects, const std::string& resource_version) {
  Replaced out;
  base::MutexLock lock(mutex_);
  std::set<Key> listed;
  for (const ObjectPtr& object : objects) listed.insert(object->key());
  std::vector<Key> vanished;
  for (const auto& [key, kept] : objects_) {
    if (!listed.contains(key)) vanished.push_back(key);
  }
  for (const Key& key : vanished) out.vanished.push_back(EraseLocked(key));
  for (const ObjectPtr& object : objects) out.put.emplace_back(PutLocked(object), object);
  resource_version_ = resource_version;
  return out;
}

void Store::SetResourceVersion(const std::string& resource_version) {
  base::MutexLock lock(mutex_);
  resource_version_ = resource_version;
}

}  // namespace medley::kube

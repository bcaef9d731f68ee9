// The objects of one informer, by key and by index. Thread-safe.
//
// Readers get shared immutable objects: never change one, copy it. Each read is one consistent snapshot.
// The informer is the only writer; it writes before its handlers hear of a change.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "kube/object.h"
#include "kube/packed.h"

namespace medley::kube {

// The values under which an object is found in an index. Pure.
using IndexFunction = std::function<std::vector<std::string>(const Object&)>;

class Store {
 public:
  // `packed`: objects are kept in a tenth of their memory and unpacked for each reader: 10 us for a pod, 50 us
  // for a TrainingJob (ADR 9). For kinds that are many.
  explicit Store(bool packed = false) : packed_(packed) {}

  ObjectPtr Get(const Key& key) const;  // null: absent
  // In the order of keys; `ns` empty: all namespaces.
  std::vector<ObjectPtr> List(std::string_view ns = "") const;
  std::vector<Key> Keys() const;
  std::string UidOf(const Key& key) const;  // "": absent
  size_t Size() const;

  // Indexes what is there and all that follows. Errors: AlreadyExists.
  absl::Status AddIndex(const std::string& name, IndexFunction function);
  // Empty for a value or an index that is not known.
  std::vector<ObjectPtr> ByIndex(const std::string& name, const std::string& value) const;

  // The resourceVersion up to which the store shows the server ("" at first); bookmarks advance it.
  std::string resource_version() const;

  // For the informer. Put and Erase return what was there before, or null.
  ObjectPtr Put(ObjectPtr object);
  ObjectPtr Erase(const Key& key);
  // What changed, in the order in which handlers shall hear of it.
  struct Replaced {
    std::vector<ObjectPtr> vanished;
    std::vector<std::pair<ObjectPtr, ObjectPtr>> put;  // (before or null, now), in list order
  };
  Replaced Replace(const std::vector<ObjectPtr>& objects, const std::string& resource_version);
  void SetResourceVersion(const std::string& resource_version);

 private:
  class Kept {
   public:
    Kept(const ObjectPtr& object, bool packed);
    ObjectPtr Get() const;
    const std::string& uid() const { return uid_; }

   private:
    ObjectPtr object_;  // null: packed
    std::shared_ptr<const Packed> packed_;
    std::string uid_;
  };
  struct Index {
    IndexFunction function;
    std::map<std::string, std::set<Key>> keys;
  };
  ObjectPtr PutLocked(ObjectPtr object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ObjectPtr EraseLocked(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::vector<ObjectPtr> Unpacked(const std::vector<Kept>& all);

  const bool packed_;
  mutable base::Mutex mutex_;
  std::map<Key, Kept> objects_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Index> indices_ ABSL_GUARDED_BY(mutex_);
  std::string resource_version_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube

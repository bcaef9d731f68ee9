// The objects of one informer, by key and by index. Thread-safe.
//
// Readers get shared immutable objects; to change an object, copy it. Each read is one consistent snapshot.
// Only the informer writes, before it calls its handlers.
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

// Returns the values under which an index finds an object. Pure.
using IndexFunction = std::function<std::vector<std::string>(const Object&)>;

class Store {
 public:
  // `packed`: keeps objects in a tenth of their memory and unpacks them for each reader, which takes 10 us for a pod
  // and 50 us for a TrainingJob (docs/adr/0009-an-operator-for-a-thousand-jobs.md). For kinds with many objects.
  explicit Store(bool packed = false) : packed_(packed) {}

  ObjectPtr Get(const Key& key) const;  // null if absent
  // Sorted by key. An empty `ns` means all namespaces.
  std::vector<ObjectPtr> List(std::string_view ns = "") const;
  std::vector<Key> Keys() const;
  std::string UidOf(const Key& key) const;  // "" if absent
  size_t Size() const;

  // Indexes all present and later objects. Errors: AlreadyExists.
  absl::Status AddIndex(const std::string& name, IndexFunction function);
  // Empty if the value or the index is unknown.
  std::vector<ObjectPtr> ByIndex(const std::string& name, const std::string& value) const;

  // The store reflects the server's state at this resourceVersion ("" at first). Bookmarks advance it.
  std::string resource_version() const;

  // For the informer. Put and Erase return the previous object, or null.
  ObjectPtr Put(ObjectPtr object);
  ObjectPtr Erase(const Key& key);
  // The changes, in the order in which handlers must see them.
  struct Replaced {
    std::vector<ObjectPtr> vanished;                   // objects that the server no longer has
    std::vector<std::pair<ObjectPtr, ObjectPtr>> put;  // (previous object or null, new object), in list order
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
    ObjectPtr object_;  // null if packed
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

// All objects, one version counter, and the recent changes of each resource for watchers.
//
// Thread-safe. A bucket holds the objects of one resource ("medley.dev/trainingjobs"). The window of changes of a
// bucket is limited: a watch from an older version gets 410. A watcher that does not keep up is disconnected ("cut").
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::localcluster::apiserver {

struct Change {
  enum class Type { kAdded, kModified, kDeleted };
  Type type;
  uint64_t version;
  kube::ObjectPtr object;    // kDeleted: the last state, with the version of the deletion
  kube::ObjectPtr previous;  // null for kAdded
};

// The changes that wait for one watcher.
class WatchQueue {
 public:
  explicit WatchQueue(size_t limit) : limit_(limit) {}
  // Waits for the next change. Returns nullopt at the deadline, on `stop`, or if cut() and no change is left.
  std::optional<Change> Next(std::stop_token stop, base::SteadyTime deadline);
  bool cut() const;

 private:
  friend class Store;
  void Push(const Change& change);
  void Cut();
  bool Empty() const;

  const size_t limit_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
};

class Store {
 public:
  struct Snapshot {
    std::vector<kube::ObjectPtr> objects;  // sorted by key
    uint64_t version = 0;
  };
  struct Watch {
    std::shared_ptr<WatchQueue> queue;
    Snapshot initial;  // only if requested
  };

  Store(size_t window, size_t watch_buffer) : window_(window), watch_buffer_(watch_buffer) {}

  kube::ObjectPtr Get(const std::string& bucket, const kube::Key& key) const;  // null if absent
  Snapshot List(const std::string& bucket, const std::string& ns = "") const;
  // All objects at one moment, by bucket.
  std::map<std::string, std::vector<kube::ObjectPtr>> All() const;
  uint64_t version() const;
  uint64_t oldest(const std::string& bucket) const;  // changes after this version are still kept

  // Replaces `expected` (null: the object does not exist) by `next` (nullopt: deletes it) and stamps its version.
  // Returns null if the stored object is not `expected`; the caller must read it again.
  kube::ObjectPtr Commit(const std::string& bucket, const kube::Key& key, const kube::ObjectPtr& expected,
                         std::optional<kube::Json> next);

  // Sends the changes after version `since`; without `since`, returns the current objects as `initial`, then sends
  // changes. Errors: 410 Expired; 504 for a version that has not been reached.
  absl::StatusOr<Watch> Open(const std::string& bucket, std::optional<uint64_t> since);
  // The version up to which `queue` has been read; nullopt if changes wait in it.
  std::optional<uint64_t> Bookmark(const WatchQueue& queue) const;
  // Disconnects the watchers of a resource that no longer exists.
  void CutWatchers(const std::string& bucket);

  // Called after each commit, outside the lock. Set once, before the first commit.
  void SetObserver(std::function<void(const std::string& bucket, const Change&)> observer) {
    observer_ = std::move(observer);
  }

 private:
  struct Bucket {
    std::map<kube::Key, kube::ObjectPtr> objects;
    std::deque<Change> changes;
    uint64_t forgotten = 0;  // version of the newest change removed from `changes`
    std::vector<std::weak_ptr<WatchQueue>> watchers;
  };
  void Publish(Bucket* bucket, Change change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t window_;
  const size_t watch_buffer_;
  std::function<void(const std::string&, const Change&)> observer_;
  mutable base::Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace medley::localcluster::apiserver

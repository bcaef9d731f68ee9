#include "localcluster/apiserver/store.h"

#include <fmt/format.h>

#include "localcluster/apiserver/api_error.h"

namespace medley::localcluster::apiserver {

std::optional<Change> WatchQueue::Next(std::stop_token stop, base::SteadyTime deadline) {
  base::MutexLock lock(mutex_);
  changed_.WaitUntil(mutex_, stop, deadline, [&] { return !changes_.empty() || cut_; });
  if (changes_.empty()) return std::nullopt;
  Change change = std::move(changes_.front());
  changes_.pop_front();
  return change;
}

bool WatchQueue::cut() const {
  base::MutexLock lock(mutex_);
  return cut_ && changes_.empty();
}

void WatchQueue::Push(const Change& change) {
  base::MutexLock lock(mutex_);
  if (cut_) return;
  if (changes_.size() >= limit_) {
    cut_ = true;
    changes_.clear();
  } else {
    changes_.push_back(change);
  }
  changed_.NotifyAll();
}

void WatchQueue::Cut() {
  base::MutexLock lock(mutex_);
  cut_ = true;
  changed_.NotifyAll();
}

bool WatchQueue::Empty() const {
  base::MutexLock lock(mutex_);
  return changes_.empty();
}

kube::ObjectPtr Store::Get(const std::string& bucket, const kube::Key& key) const {
  base::MutexLock lock(mutex_);
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return nullptr;
  const auto it = b->second.objects.find(key);
  return it == b->second.objects.end() ? nullptr : it->second;
}

Store::Snapshot Store::List(const std::string& bucket, const std::string& ns) const {
  base::MutexLock lock(mutex_);
  Snapshot snapshot;
  snapshot.version = version_;
  const auto b = buckets_.find(bucket);
  if (b == buckets_.end()) return snapshot;
  for (const auto& [key, object] : b->second.objects) {
    if (ns.empty() || key.ns == ns) snapshot.objects.push_back(object);
  }
  return snapshot;
}

std::map<std::string, std::vector<kube::ObjectPtr>> Store::All() const {
  base::MutexLock lock(mutex_);
  std::map<std::string, std::vector<kube::ObjectPtr>> all;
  for (const auto& [name, bucket] : buckets_) {
    std::vector<kube::ObjectPtr>& out = all[name];
    for (const auto& [key, object] : bucket.objects) out.push_back(object);
  }
  return all;
}

uint64_t Store::version() const {
  base::MutexLock lock(mutex_);
  return version_;
}

uint64_t Store::oldest(const std::string& bucket) const {
  base::MutexLock lock(mutex_);
  const auto b = buckets_.find(bucket);
  return b == buckets_.end() ? 0 : b->second.forgotten;
}

kube::ObjectPtr Store::Commit(const std::string& bucket_name, const kube::Key& key, const kube::ObjectPtr& expected,
                              std::optional<kube::Json> next) {
  Change change;
  {
    base::MutexLock lock(mutex_);
    Bucket& bucket = buckets_[bucket_name];
    const auto it = bucket.objects.find(key);
    const kube::ObjectPtr current = it == bucket.objects.end() ? nullptr : it->second;
    if (current != expected) return nullptr;
    const bool deletes = !next.has_value();
    if (deletes && current == nullptr) return nullptr;
    kube::Json json = deletes ? current->json() : std::move(*next);
    json["metadata"]["resourceVersion"] = std::to_string(++version_);
    auto object = std::make_shared<const kube::Object>(std::move(json));
    if (deletes) {
      bucket.objects.erase(it);
    } else {
      bucket.objects[key] = object;
    }
    change = {deletes              ? Change::Type::kDeleted
              : current == nullptr ? Change::Type::kAdded
                                   : Change::Type::kModified,
              version_, std::move(object), current};
    Publish(&bucket, change);
  }
  if (observer_) observer_(bucket_name, change);
  return change.object;
}

void Store::Publish(Bucket* bucket, Change change) {
  std::erase_if(bucket->watchers, [&](const std::weak_ptr<WatchQueue>& weak) {
    const auto queue = weak.lock();
    if (queue != nullptr) queue->Push(change);
    return queue == nullptr;
  });
  bucket->changes.push_back(std::move(change));
  while (bucket->changes.size() > window_) {
    bucket->forgotten = bucket->changes.front().version;
    bucket->changes.pop_front();
  }
}

absl::StatusOr<Store::Watch> Store::Open(const std::string& bucket_name, std::optional<uint64_t> since) {
  base::MutexLock lock(mutex_);
  Bucket& bucket = buckets_[bucket_name];
  Watch watch;
  watch.queue = std::make_shared<WatchQueue>(watch_buffer_);
  if (since.has_value()) {
    if (*since > version_) return TooLargeVersion(*since, version_);
    if (*since < bucket.forgotten) {
      return ExpiredError(fmt::format("too old resource version: {} ({})", *since, bucket.forgotten));
    }
    // The initial backlog may be longer than the buffer's limit, which holds for later changes.
    base::MutexLock queue_lock(watch.queue->mutex_);
    for (const Change& change : bucket.changes) {
      if (change.version > *since) watch.queue->changes_.push_back(change);
    }
  } else {
    for (const auto& [key, object] : bucket.objects) watch.initial.objects.push_back(object);
  }
  watch.initial.version = version_;
  bucket.watchers.push_back(watch.queue);
  return watch;
}

std::optional<uint64_t> Store::Bookmark(const WatchQueue& queue) const {
  base::MutexLock lock(mutex_);
  if (!queue.Empty()) return std::nullopt;
  return version_;
}

void Store::CutWatchers(const std::string& bucket) {
  base::MutexLock lock(mutex_);
  const auto it = buckets_.find(bucket);
  if (it == buckets_.end()) return;
  for (const auto& weak : it->second.watchers) {
    if (const auto queue = weak.lock()) queue->Cut();
  }
  it->second.watchers.clear();
}

}  // namespace medley::localcluster::apiserver

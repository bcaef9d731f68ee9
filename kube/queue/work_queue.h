// A queue of keys to work on (client-go's workqueue with controller-runtime's priorities).
//
// A key is queued at most once; a key that is being worked on is never given to a second worker. If it is added
// meanwhile, Done queues it again. Keys with a higher priority come first; within a priority the order is first in,
// first out. The number of distinct keys bounds the queue's size. Thread-safe.
//
//   while (auto key = queue.Get(stop)) { Work(*key); queue.Done(*key); }
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <tuple>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"
#include "kube/queue/metrics.h"

namespace medley::kube {

class WorkQueue {
 public:
  // For keys of the first list and of resyncs: keys of changed objects come before them.
  static constexpr int kLowPriority = -100;

  // Both arguments are borrowed. `metrics` may be null.
  explicit WorkQueue(base::Clock& clock, QueueMetrics* metrics = nullptr);
  virtual ~WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // A key that is already queued keeps its place, or moves up to the higher priority.
  void Add(const Key& key, int priority = 0);
  // Waits for the next key. Returns nullopt if `stop` is requested, or after ShutDown when the queue is empty.
  std::optional<Key> Get(std::stop_token stop);
  // Call it after each Get, when the work is done.
  void Done(const Key& key);
  size_t Length() const;

  // Ignores later Adds. Get still returns the keys that are queued.
  virtual void ShutDown();
  // ShutDown, then waits until no key is queued or being worked on. Ends early on `stop` or ShutDown.
  virtual void ShutDownWithDrain(std::stop_token stop);
  bool ShuttingDown() const;

  // Reports work in progress to the metrics.
  void ReportUnfinished();

 protected:
  base::Clock& clock_;
  QueueMetrics* const metrics_;

 private:
  struct Waiting {
    int priority = 0;
    uint64_t sequence = 0;
    base::SteadyTime since;
  };
  void Insert(const Key& key, int priority) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  // Invariant: order_ and waiting_ hold the same keys; no key is in both waiting_ and processing_.
  std::set<std::tuple<int, uint64_t, Key>> order_ ABSL_GUARDED_BY(mutex_);  // -priority first
  std::map<Key, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, base::SteadyTime> processing_ ABSL_GUARDED_BY(mutex_);
  std::map<Key, int> dirty_ ABSL_GUARDED_BY(mutex_);  // added while processing: priority
  bool shutting_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace medley::kube

// A queue of keys to work on (client-go's workqueue with controller-runtime's priorities).
//
// A key waits at most once; a key that is being worked on is never given to a second worker, and is queued
// again at Done when it was added meanwhile. Order: higher priority first, then first in, first out.
// Its size is bounded by the number of distinct keys. Thread-safe.
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
  // For keys of a first list and of resyncs: everything that changed goes first.
  static constexpr int kLowPriority = -100;

  // `metrics` may be null; both are borrowed.
  explicit WorkQueue(base::Clock& clock, QueueMetrics* metrics = nullptr);
  virtual ~WorkQueue() = default;
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // A key that waits already keeps its place, or moves up to the higher priority.
  void Add(const Key& key, int priority = 0);
  // The next key; nothing when `stop` is requested, or after ShutDown when all queued keys were given out.
  std::optional<Key> Get(std::stop_token stop);
  // Must follow each Get.
  void Done(const Key& key);
  size_t Length() const;

  // Refuses further adds; waiting keys are still given out.
  virtual void ShutDown();
  // ShutDown, then waits until nothing waits and nothing is worked on; ends early by `stop` or by ShutDown.
  virtual void ShutDownWithDrain(std::stop_token stop);
  bool ShuttingDown() const;

  // Tells the metrics of work in progress.
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

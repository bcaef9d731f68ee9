// Runs a reconciler for the keys in a queue, with sources that fill the queue and workers that empty it (as
// controller-runtime's Controller). By the result of a reconciliation the key is:
//
//   an error                requeued with exponential backoff
//   a terminal error        not requeued; the error is counted and logged
//   OK with requeue_after   requeued after that delay
//   OK                      not requeued
//
// Thread-safe. Call AddSource before Start; Start waits until the caches of the sources are filled.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kube/queue/delaying_queue.h"
#include "operator/runtime/reconciler.h"
#include "operator/runtime/source.h"

namespace medley::ops {

// Receives what a controller counts; called from worker threads. operator/telemetry implements it.
class ControllerMetrics {
 public:
  enum class Outcome { kSuccess, kRequeueAfter, kError, kTerminalError };
  virtual ~ControllerMetrics() = default;
  virtual void OnStart() {}  // before each reconciliation; OnReconcile follows
  virtual void OnReconcile(Outcome, base::nanoseconds /*duration*/) {}
  virtual void OnException() {}
};

class Controller {
 public:
  struct Options {
    std::string name;
    int workers = 1;
    base::nanoseconds sync_timeout = std::chrono::minutes(2);
    std::unique_ptr<kube::RateLimiter> limiter;   // null: the default
    kube::QueueMetrics* queue_metrics = nullptr;  // borrowed, may be null
    ControllerMetrics* metrics = nullptr;         // borrowed, may be null
  };

  // Borrows `reconciler` and `clock`.
  Controller(Options options, Reconciler& reconciler, base::Clock& clock);
  ~Controller();

  const std::string& name() const { return name_; }
  // Each change of an object of `informer` enqueues the keys that `map` returns for it; an update enqueues those of the
  // old and of the new object. Keys from the first list and from resyncs have a lower priority than keys from changes.
  absl::Status AddSource(kube::Informer& informer, KeyMapper map, UpdateFilter filter = nullptr);
  // For causes other than changes of objects: new plans, timers. A `priority` below 0 puts the key behind keys from
  // changes.
  void Enqueue(const kube::Key& key, int priority = 0);
  void EnqueueAfter(const kube::Key& key, base::nanoseconds delay);

  // Waits for the caches, then starts the workers. Errors: DeadlineExceeded, Cancelled, FailedPrecondition.
  absl::Status Start(std::stop_token stop = {});
  // Idempotent. Refuses further keys, waits for running reconciliations, joins the workers and removes its handlers.
  void Stop();
  size_t QueueLength() const { return queue_.Length(); }

 private:
  struct Source {
    kube::Informer* informer;
    kube::HandlerId handler;
  };
  void Work(std::stop_token stop);
  absl::StatusOr<Result> Run(const kube::Key& key);
  void Finish(const kube::Key& key, const absl::StatusOr<Result>& result, base::nanoseconds took);

  const std::string name_;
  const int worker_count_;
  const base::nanoseconds sync_timeout_;
  ControllerMetrics* const metrics_;
  Reconciler& reconciler_;
  base::Clock& clock_;
  kube::RateLimitingQueue queue_;
  base::Mutex mutex_;
  std::vector<Source> sources_ ABSL_GUARDED_BY(mutex_);
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> workers_;
};

}  // namespace medley::ops

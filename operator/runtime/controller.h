// A named reconciler with its queue, sources and workers (controller-runtime's Controller).
//
//   error -> again with growing waits | terminal error -> counted only | requeue_after -> then | OK -> done
//
// Thread-safe. Add sources before Start; Start waits until their caches are filled.
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

// What a controller counts. Calls come from worker threads. Owner: telemetry.
class ControllerMetrics {
 public:
  enum class Outcome { kSuccess, kRequeueAfter, kError, kTerminalError };
  virtual ~ControllerMetrics() = default;
  virtual void OnStart() {}  // before each OnReconcile
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

  // All borrowed but the options.
  Controller(Options options, Reconciler& reconciler, base::Clock& clock);
  ~Controller();

  const std::string& name() const { return name_; }
  // Each change of `informer`'s objects enqueues the keys that `map` gives; an update those of both states.
  // Objects of the first list and resyncs wait behind real changes.
  absl::Status AddSource(kube::Informer& informer, KeyMapper map, UpdateFilter filter = nullptr);
  // From outside of the API: plans that arrived, timers.
  // `priority`: below 0, behind what changed.
  void Enqueue(const kube::Key& key, int priority = 0);
  void EnqueueAfter(const kube::Key& key, base::nanoseconds delay);

  // Waits for the caches, then starts the workers. Errors: DeadlineExceeded, Cancelled, FailedPrecondition.
  absl::Status Start(std::stop_token stop = {});
  // Idempotent: refuses further keys, waits for running reconciliations, joins, leaves its sources.
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

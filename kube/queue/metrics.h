// Receives a work queue's metrics. Any thread may call it, sometimes with the queue's lock held: an implementation must
// be quick and must not call the queue. The names follow client-go's workqueue metrics.
#pragma once

#include <chrono>
#include <cstddef>

namespace medley::kube {

class QueueMetrics {
 public:
  virtual ~QueueMetrics() = default;
  virtual void OnAdd() {}
  virtual void OnRetry() {}
  virtual void SetDepth(size_t) {}
  virtual void ObserveLatency(std::chrono::nanoseconds) {}       // from Add to Get
  virtual void ObserveWorkDuration(std::chrono::nanoseconds) {}  // from Get to Done
  // Called every 0.5 s by a delaying queue: the sum and the maximum of the durations of work in progress.
  virtual void SetUnfinished(std::chrono::nanoseconds) {}
  virtual void SetLongestRunning(std::chrono::nanoseconds) {}
};

}  // namespace medley::kube

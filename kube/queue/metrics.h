// What a work queue tells of itself. Calls come from any thread, some with the queue's lock held: an
// implementation must be quick and must not call back. Names follow client-go's workqueue metrics.
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
  // Every 0.5 s, from a delaying queue: seconds of work in progress, and its longest.
  virtual void SetUnfinished(std::chrono::nanoseconds) {}
  virtual void SetLongestRunning(std::chrono::nanoseconds) {}
};

}  // namespace medley::kube

// Threads that process requests, so that a long request never blocks the network thread.
//
// Accepts work only if a thread is free, so there is no queue. Thread-safe.
#pragma once

#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace medley::sched {

class WorkPool {
 public:
  explicit WorkPool(int threads);
  // Waits for running work.
  ~WorkPool();

  // Returns false, without running `work`, if every thread is busy.
  bool TryRun(std::function<void()> work);

 private:
  void Run(std::stop_token stop);

  const size_t size_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::function<void()>> taken_ ABSL_GUARDED_BY(mutex_);  // accepted, not started yet
  size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;                           // number of accepted and running works
  std::vector<std::jthread> threads_;
};

}  // namespace medley::sched

// Threads that answer requests, so that a long one never holds up the threads that read and write the network.
//
// Takes a piece of work only while a thread is free for it: there is no queue to grow. Thread-safe.
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

  // False: every thread is busy, `work` was not taken.
  bool TryRun(std::function<void()> work);

 private:
  void Run(std::stop_token stop);

  const size_t size_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::function<void()>> taken_ ABSL_GUARDED_BY(mutex_);  // by no thread yet
  size_t busy_ ABSL_GUARDED_BY(mutex_) = 0;                           // with `taken_`
  std::vector<std::jthread> threads_;
};

}  // namespace medley::sched

#include "scheduler-service/serve_rest/work_pool.h"

#include <utility>

namespace medley::sched {

WorkPool::WorkPool(int threads) : size_(static_cast<size_t>(threads)) {
  for (size_t i = 0; i < size_; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Run(std::move(stop)); });
  }
}

WorkPool::~WorkPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

bool WorkPool::TryRun(std::function<void()> work) {
  base::MutexLock lock(mutex_);
  if (busy_ >= size_) return false;
  ++busy_;
  taken_.push_back(std::move(work));
  changed_.NotifyOne();
  return true;
}

void WorkPool::Run(std::stop_token stop) {
  while (true) {
    std::function<void()> work;
    {
      base::MutexLock lock(mutex_);
      // Run accepted work even if the pool is being destroyed.
      changed_.Wait(mutex_, stop, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !taken_.empty(); });
      if (taken_.empty()) return;
      work = std::move(taken_.back());
      taken_.pop_back();
    }
    work();
    work = nullptr;
    base::MutexLock lock(mutex_);
    --busy_;
  }
}

}  // namespace medley::sched

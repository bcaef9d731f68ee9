#include "worker/ps/fetch_ahead.h"

#include <utility>

namespace medley::worker {

FetchAhead::FetchAhead(Fetch fetch)
    : fetch_(std::move(fetch)), thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

void FetchAhead::Add(int table, std::vector<uint64_t> keys) {
  base::MutexLock lock(mutex_);
  if (queue_.size() >= kMostQueued) return;
  queue_.push_back({table, std::move(keys)});
  changed_.NotifyAll();
}

void FetchAhead::Await() {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, {}, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return queue_.empty() && !busy_; });
}

void FetchAhead::Run(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); })) {
    const Keys next = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    mutex_.unlock();
    fetch_(next.table, next.keys);
    mutex_.lock();
    busy_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace medley::worker

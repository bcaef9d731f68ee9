#include "worker/ps/fetch_ahead.h"

#include <algorithm>
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
  changed_.Wait(mutex_, {}, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return queue_.empty() && !busy_with_; });
}

void FetchAhead::AwaitTable(int table) {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, {}, [this, table]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return busy_with_ != table && std::ranges::none_of(queue_, [table](const Keys& k) { return k.table == table; });
  });
}

void FetchAhead::Run(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !queue_.empty(); })) {
    const Keys next = std::move(queue_.front());
    queue_.pop_front();
    busy_with_ = next.table;
    mutex_.unlock();
    fetch_(next.table, next.keys);
    mutex_.lock();
    busy_with_.reset();
    changed_.NotifyAll();
  }
}

}  // namespace medley::worker

#include "kube/queue/work_queue.h"

#include <algorithm>

namespace medley::kube {

WorkQueue::WorkQueue(base::Clock& clock, QueueMetrics* metrics) : clock_(clock), metrics_(metrics) {}

void WorkQueue::Insert(const Key& key, int priority) {
  const auto [it, inserted] = waiting_.try_emplace(key);
  Waiting& waiting = it->second;
  if (inserted) {
    waiting = {priority, sequence_++, clock_.Steady()};
  } else if (priority > waiting.priority) {
    order_.erase({-waiting.priority, waiting.sequence, key});
    waiting.priority = priority;
  } else {
    return;
  }
  order_.insert({-waiting.priority, waiting.sequence, key});
  if (metrics_ != nullptr && inserted) {
    metrics_->OnAdd();
    metrics_->SetDepth(waiting_.size());
  }
  changed_.NotifyAll();
}

void WorkQueue::Add(const Key& key, int priority) {
  base::MutexLock lock(mutex_);
  if (shutting_down_) return;
  if (processing_.contains(key)) {
    const auto [it, inserted] = dirty_.try_emplace(key, priority);
    if (!inserted) it->second = std::max(it->second, priority);
    return;
  }
  Insert(key, priority);
}

std::optional<Key> WorkQueue::Get(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, stop, [&] { return !order_.empty() || shutting_down_; });
  if (stop.stop_requested() || order_.empty()) return std::nullopt;
  const Key key = std::get<2>(*order_.begin());
  order_.erase(order_.begin());
  const auto waiting = waiting_.extract(key);
  const base::SteadyTime now = clock_.Steady();
  processing_[key] = now;
  if (metrics_ != nullptr) {
    metrics_->ObserveLatency(now - waiting.mapped().since);
    metrics_->SetDepth(waiting_.size());
  }
  return key;
}

void WorkQueue::Done(const Key& key) {
  base::MutexLock lock(mutex_);
  const auto worked = processing_.extract(key);
  if (worked.empty()) return;
  if (metrics_ != nullptr) metrics_->ObserveWorkDuration(clock_.Steady() - worked.mapped());
  if (const auto dirty = dirty_.extract(key); !dirty.empty()) Insert(key, dirty.mapped());
  changed_.NotifyAll();
}

size_t WorkQueue::Length() const {
  base::MutexLock lock(mutex_);
  return waiting_.size();
}

void WorkQueue::ShutDown() {
  base::MutexLock lock(mutex_);
  shutting_down_ = true;
  draining_ = false;
  changed_.NotifyAll();
}

void WorkQueue::ShutDownWithDrain(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  shutting_down_ = true;
  draining_ = true;
  changed_.NotifyAll();
  changed_.Wait(mutex_, stop, [&] { return !draining_ || (processing_.empty() && waiting_.empty()); });
}

bool WorkQueue::ShuttingDown() const {
  base::MutexLock lock(mutex_);
  return shutting_down_;
}

void WorkQueue::ReportUnfinished() {
  if (metrics_ == nullptr) return;
  base::MutexLock lock(mutex_);
  const base::SteadyTime now = clock_.Steady();
  base::nanoseconds total{0};
  base::nanoseconds longest{0};
  for (const auto& [key, since] : processing_) {
    total += now - since;
    longest = std::max<base::nanoseconds>(longest, now - since);
  }
  metrics_->SetUnfinished(total);
  metrics_->SetLongestRunning(longest);
}

}  // namespace medley::kube

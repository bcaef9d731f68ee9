#include "kube/queue/delaying_queue.h"

#include <algorithm>

namespace medley::kube {
namespace {

constexpr base::nanoseconds kHeartbeat = base::seconds(10);
constexpr base::nanoseconds kReportEvery = base::milliseconds(500);

}  // namespace

DelayingQueue::DelayingQueue(base::Clock& clock, QueueMetrics* metrics)
    : WorkQueue(clock, metrics), thread_([this](std::stop_token stop) { Run(stop); }) {}

DelayingQueue::~DelayingQueue() {
  thread_.request_stop();
  thread_.join();
}

void DelayingQueue::AddAfter(const Key& key, base::nanoseconds delay, int priority) {
  if (ShuttingDown()) return;
  if (delay <= base::nanoseconds(0)) {
    Add(key, priority);
    return;
  }
  const base::SteadyTime at = clock_.Steady() + delay;
  std::optional<std::stop_source> wake;
  {
    base::MutexLock lock(delay_mutex_);
    const auto [it, inserted] = delayed_.try_emplace(key, Delay{at, priority});
    if (!inserted) it->second.priority = std::max(it->second.priority, priority);
    if (!inserted && it->second.at <= at) return;
    it->second.at = at;
    heap_.push({at, delay_sequence_++, key});
    if (heap_.top().key == key && heap_.top().at == at) wake = wake_;
  }
  if (wake) wake->request_stop();
}

size_t DelayingQueue::Delayed() const {
  base::MutexLock lock(delay_mutex_);
  return delayed_.size();
}

void DelayingQueue::ShutDown() {
  WorkQueue::ShutDown();
  thread_.request_stop();
}

void DelayingQueue::ShutDownWithDrain(std::stop_token stop) {
  thread_.request_stop();
  WorkQueue::ShutDownWithDrain(stop);
}

std::vector<std::pair<Key, int>> DelayingQueue::TakeReady(base::SteadyTime now) {
  std::vector<std::pair<Key, int>> ready;
  base::MutexLock lock(delay_mutex_);
  while (!heap_.empty() && heap_.top().at <= now) {
    const Entry entry = heap_.top();
    heap_.pop();
    const auto it = delayed_.find(entry.key);
    if (it == delayed_.end() || it->second.at != entry.at) continue;  // the key was moved to an earlier time
    ready.emplace_back(entry.key, it->second.priority);
    delayed_.erase(it);
  }
  return ready;
}

void DelayingQueue::Run(std::stop_token stop) {
  const std::stop_callback on_stop(stop, [this] {
    std::optional<std::stop_source> wake;
    {
      base::MutexLock lock(delay_mutex_);
      wake = wake_;
    }
    wake->request_stop();
  });
  while (!stop.stop_requested()) {
    const base::SteadyTime now = clock_.Steady();
    for (const auto& [key, priority] : TakeReady(now)) Add(key, priority);
    ReportUnfinished();
    base::SteadyTime until = now + (metrics_ != nullptr ? kReportEvery : kHeartbeat);
    std::stop_token wake;
    {
      base::MutexLock lock(delay_mutex_);
      wake_ = std::stop_source();
      wake = wake_.get_token();
      if (!heap_.empty()) until = std::min(until, heap_.top().at);
    }
    // A stop request between the check above and the creation of wake_ would not end this sleep: check again.
    if (stop.stop_requested()) return;
    clock_.SleepUntil(until, wake);
  }
}

RateLimitingQueue::RateLimitingQueue(base::Clock& clock, std::unique_ptr<RateLimiter> limiter, QueueMetrics* metrics)
    : DelayingQueue(clock, metrics), limiter_(limiter != nullptr ? std::move(limiter) : DefaultRateLimiter(clock)) {}

void RateLimitingQueue::AddRateLimited(const Key& key, int priority) {
  if (metrics_ != nullptr) metrics_->OnRetry();
  AddAfter(key, limiter_->When(key), priority);
}

}  // namespace medley::kube

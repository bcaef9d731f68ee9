// A work queue to which keys can be added after a delay, and one that backs off failing keys.
// Thread-safe. Each owns one thread, which ends with ShutDown or the destructor.
#pragma once

#include <memory>
#include <queue>
#include <thread>

#include "kube/queue/rate_limiter.h"
#include "kube/queue/work_queue.h"

namespace medley::kube {

class DelayingQueue : public WorkQueue {
 public:
  explicit DelayingQueue(base::Clock& clock, QueueMetrics* metrics = nullptr);
  ~DelayingQueue() override;

  // A delay <= 0 adds the key at once. A key that already waits keeps the earlier time and the higher priority. Does
  // nothing after ShutDown.
  void AddAfter(const Key& key, base::nanoseconds delay, int priority = 0);
  void ShutDown() override;
  void ShutDownWithDrain(std::stop_token stop) override;
  // The number of keys that wait for their time.
  size_t Delayed() const;

 private:
  struct Entry {
    base::SteadyTime at;
    uint64_t sequence;
    Key key;
    bool operator>(const Entry& o) const { return std::tie(at, sequence) > std::tie(o.at, o.sequence); }
  };
  struct Delay {
    base::SteadyTime at;
    int priority;
  };
  void Run(std::stop_token stop);
  std::vector<std::pair<Key, int>> TakeReady(base::SteadyTime now);

  mutable base::Mutex delay_mutex_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_ ABSL_GUARDED_BY(delay_mutex_);
  std::map<Key, Delay> delayed_ ABSL_GUARDED_BY(delay_mutex_);  // authoritative; heap_ may contain outdated entries
  uint64_t delay_sequence_ ABSL_GUARDED_BY(delay_mutex_) = 0;
  std::stop_source wake_ ABSL_GUARDED_BY(delay_mutex_);  // ends the current sleep
  std::jthread thread_;                                  // last member: destroyed first
};

class RateLimitingQueue final : public DelayingQueue {
 public:
  // `limiter` null: DefaultRateLimiter.
  explicit RateLimitingQueue(base::Clock& clock, std::unique_ptr<RateLimiter> limiter = nullptr,
                             QueueMetrics* metrics = nullptr);
  void AddRateLimited(const Key& key, int priority = 0);
  // Clears the key's count of failures. The worker must still call Done.
  void Forget(const Key& key) { limiter_->Forget(key); }
  int Requeues(const Key& key) const { return limiter_->Requeues(key); }

 private:
  const std::unique_ptr<RateLimiter> limiter_;
};

}  // namespace medley::kube

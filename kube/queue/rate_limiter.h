// Computes how long a failing key waits (client-go's workqueue rate limiters). Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::kube {

class RateLimiter {
 public:
  virtual ~RateLimiter() = default;
  // Counts a failure of `key` and returns the wait before its next attempt; never negative.
  virtual base::nanoseconds When(const Key& key) = 0;
  // Call it when `key` has succeeded or is no longer retried.
  virtual void Forget(const Key& key) = 0;
  virtual int Requeues(const Key& key) const = 0;
};

// base * 2^failures, at most max, without overflow.
class ExponentialRateLimiter final : public RateLimiter {
 public:
  explicit ExponentialRateLimiter(base::nanoseconds base = base::milliseconds(5),
                                  base::nanoseconds max = base::seconds(1000));
  base::nanoseconds When(const Key& key) override;
  void Forget(const Key& key) override;
  int Requeues(const Key& key) const override;

 private:
  const base::nanoseconds base_;
  const base::nanoseconds max_;
  mutable base::Mutex mutex_;
  std::map<Key, int> failures_ ABSL_GUARDED_BY(mutex_);
};

// A token bucket shared by all keys: `per_second` tokens, of which at most `burst` are saved.
class BucketRateLimiter final : public RateLimiter {
 public:
  BucketRateLimiter(base::Clock& clock, double per_second = 10, double burst = 100);
  base::nanoseconds When(const Key& key) override;
  void Forget(const Key&) override {}
  int Requeues(const Key&) const override { return 0; }

 private:
  base::Clock& clock_;
  const double per_second_;
  const double burst_;
  base::Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_);  // negative: tokens reserved for the future
  base::SteadyTime at_ ABSL_GUARDED_BY(mutex_);
};

// The longest wait of all its limiters.
class MaxOfRateLimiter final : public RateLimiter {
 public:
  explicit MaxOfRateLimiter(std::vector<std::unique_ptr<RateLimiter>> limiters);
  base::nanoseconds When(const Key& key) override;
  void Forget(const Key& key) override;
  int Requeues(const Key& key) const override;

 private:
  const std::vector<std::unique_ptr<RateLimiter>> limiters_;
};

// client-go's default: max(5 ms * 2^failures up to 1000 s, 10/s with a burst of 100).
std::unique_ptr<RateLimiter> DefaultRateLimiter(base::Clock& clock);

}  // namespace medley::kube

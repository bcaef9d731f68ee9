#include "kube/queue/rate_limiter.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::kube {

ExponentialRateLimiter::ExponentialRateLimiter(base::nanoseconds base, base::nanoseconds max)
    : base_(base), max_(max) {}

base::nanoseconds ExponentialRateLimiter::When(const Key& key) {
  base::MutexLock lock(mutex_);
  int& failures = failures_[key];
  const double wait = static_cast<double>(base_.count()) * std::exp2(failures);
  if (failures < std::numeric_limits<int>::max()) ++failures;
  // Compare as doubles, so that a wait that does not fit int64 is never cast.
  if (wait >= static_cast<double>(max_.count())) return max_;
  return base::nanoseconds(static_cast<int64_t>(wait));
}

void ExponentialRateLimiter::Forget(const Key& key) {
  base::MutexLock lock(mutex_);
  failures_.erase(key);
}

int ExponentialRateLimiter::Requeues(const Key& key) const {
  base::MutexLock lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

BucketRateLimiter::BucketRateLimiter(base::Clock& clock, double per_second, double burst)
    : clock_(clock), per_second_(per_second), burst_(burst), tokens_(burst), at_(clock.Steady()) {}

base::nanoseconds BucketRateLimiter::When(const Key&) {
  base::MutexLock lock(mutex_);
  const base::SteadyTime now = clock_.Steady();
  tokens_ = std::min(burst_, tokens_ + base::ToSeconds(now - at_) * per_second_);
  at_ = now;
  tokens_ -= 1;
  return tokens_ >= 0 ? base::nanoseconds(0) : base::FromSeconds(-tokens_ / per_second_);
}

MaxOfRateLimiter::MaxOfRateLimiter(std::vector<std::unique_ptr<RateLimiter>> limiters)
    : limiters_(std::move(limiters)) {}

base::nanoseconds MaxOfRateLimiter::When(const Key& key) {
  base::nanoseconds wait{0};
  for (const auto& limiter : limiters_) wait = std::max(wait, limiter->When(key));
  return wait;
}

void MaxOfRateLimiter::Forget(const Key& key) {
  for (const auto& limiter : limiters_) limiter->Forget(key);
}

int MaxOfRateLimiter::Requeues(const Key& key) const {
  int requeues = 0;
  for (const auto& limiter : limiters_) requeues = std::max(requeues, limiter->Requeues(key));
  return requeues;
}

std::unique_ptr<RateLimiter> DefaultRateLimiter(base::Clock& clock) {
  std::vector<std::unique_ptr<RateLimiter>> limiters;
  limiters.push_back(std::make_unique<ExponentialRateLimiter>());
  limiters.push_back(std::make_unique<BucketRateLimiter>(clock));
  return std::make_unique<MaxOfRateLimiter>(std::move(limiters));
}

}  // namespace medley::kube

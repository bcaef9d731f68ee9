#include "scheduler-service/simulate/quotas.h"

#include <algorithm>
#include <cmath>

namespace medley::sched {

double Quotas::Spend(int device, double now, double seconds) {
  if (quotas_.empty() || quotas_[static_cast<size_t>(device)].period <= 0 || seconds <= 0) return now + seconds;
  const Durations::Quota& quota = quotas_[static_cast<size_t>(device)];
  constexpr double kMostPeriods = 1e12;  // beyond it numbers of periods are not exact
  if (std::max(now, seconds * quota.period / quota.seconds) > kMostPeriods * quota.period) {
    return now + seconds * quota.period / quota.seconds;
  }
  Spent& spent = spent_[static_cast<size_t>(device)];
  auto window = static_cast<int64_t>(std::floor((now - quota.phase) / quota.period));
  if (window < spent.window) {
    window = spent.window;
    now = StartOf(quota, window);
  }
  for (bool first = true;;) {
    if (window > spent.window) {
      spent.window = window;
      spent.left = quota.seconds;
    }
    const double usable = std::clamp(StartOf(quota, window + 1) - now, 0.0, spent.left);
    if (first) {
      spent.first = window;
      spent.first_end = now + usable;
      first = false;
    }
    if (seconds <= usable) {
      spent.left -= seconds;
      return now + seconds;
    }
    seconds -= usable;
    spent.left -= usable;
    // Whole periods at once, so that a long computation is no long loop.
    const auto whole = static_cast<int64_t>(seconds / quota.seconds);
    window += 1 + std::max<int64_t>(0, whole - 1);
    seconds -= static_cast<double>(std::max<int64_t>(0, whole - 1)) * quota.seconds;
    now = StartOf(quota, window);
  }
}

double Quotas::Runs(int device, double now) const {
  if (quotas_.empty() || quotas_[static_cast<size_t>(device)].period <= 0) return now;
  const Durations::Quota& quota = quotas_[static_cast<size_t>(device)];
  const Spent& spent = spent_[static_cast<size_t>(device)];
  const auto window = static_cast<int64_t>(std::floor((now - quota.phase) / quota.period));
  if (window < spent.first || window > spent.window || (window == spent.window && spent.left > 0)) return now;
  const double used_up = window == spent.first ? spent.first_end : StartOf(quota, window) + quota.seconds;
  return now < used_up ? now : StartOf(quota, window + 1);
}

}  // namespace medley::sched

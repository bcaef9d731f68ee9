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
  const auto start_of = [&](int64_t window) { return quota.phase + static_cast<double>(window) * quota.period; };
  auto window = static_cast<int64_t>(std::floor((now - quota.phase) / quota.period));
  if (window < spent.window) {
    window = spent.window;
    now = start_of(window);
  }
  while (true) {
    if (window > spent.window) spent = {window, quota.seconds};
    const double usable = std::clamp(start_of(window + 1) - now, 0.0, spent.left);
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
    now = start_of(window);
  }
}

}  // namespace medley::sched

#include "scheduler-service/catalog/hysteresis.h"

#include <algorithm>
#include <cmath>

namespace medley::sched {

bool ShouldPublish(const HysteresisOptions& options, double published, base::WallTime published_at, double price,
                   base::WallTime now) {
  constexpr double kRounding = 1e-12;  // so that a step from 1 to 1.1 counts as 10 % despite rounding
  const double change = std::abs(price - published);
  if (change >= options.at_once * published * (1 - kRounding) && change > 0) return true;
  if (change <= std::max(options.relative * published, options.absolute) * (1 + kRounding)) return false;
  return now < published_at || now - published_at >= options.min_interval;
}

}  // namespace medley::sched

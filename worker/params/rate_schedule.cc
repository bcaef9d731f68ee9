#include "worker/params/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace medley::worker {

double RateFactor(const RateSchedule& schedule, int64_t step) {
  if (step <= schedule.warmup_steps) {
    return static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  }
  const int64_t updates = step - 1 - schedule.warmup_steps;
  switch (schedule.curve) {
    case RateCurve::kConstant:
      return 1;
    case RateCurve::kStep:
      return std::pow(schedule.factor, static_cast<double>(updates / schedule.every_steps));
    case RateCurve::kCosine: {
      const double part = static_cast<double>(std::min(updates, schedule.steps)) / static_cast<double>(schedule.steps);
      return schedule.final_factor + (1 - schedule.final_factor) * (1 + std::cos(std::numbers::pi * part)) / 2;
    }
  }
  return 1;
}

}  // namespace medley::worker

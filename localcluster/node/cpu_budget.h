// How long a process must stand still to use no more than its share of cpu. Pure.
//
// A budget grows by `cores` seconds a second, up to `burst` seconds of wall time's worth, and shrinks by
// the cpu time used. Below zero the process has to stop until it is zero again: debt / cores.
#pragma once

#include <algorithm>

#include "common/base/clock.h"

namespace medley::kube {

class CpuBudget {
 public:
  CpuBudget(double cores, base::nanoseconds burst) : cores_(cores), most_(cores * base::ToSeconds(burst)) {}

  // `used` cpu time in the last `elapsed` wall time. Returns the stop that is due now; 0: it may run.
  base::nanoseconds Charge(base::nanoseconds used, base::nanoseconds elapsed) {
    balance_ = std::min(most_, balance_ + cores_ * base::ToSeconds(elapsed) - base::ToSeconds(used));
    return balance_ >= 0 ? base::nanoseconds(0) : base::FromSeconds(-balance_ / cores_);
  }

 private:
  const double cores_;
  const double most_;   // cpu seconds
  double balance_ = 0;  // cpu seconds
};

}  // namespace medley::kube

// Computes how long a process must be stopped so that it uses no more than its CPU limit. Pure.
//
// The budget is CPU time. It grows by `cores` seconds per second, up to `cores` x `burst`, and shrinks by the CPU time
// used. If it falls below zero, the process must stop until it is zero again, which takes debt / cores.
#pragma once

#include <algorithm>

#include "common/base/clock.h"

namespace medley::localcluster {

class CpuBudget {
 public:
  CpuBudget(double cores, base::nanoseconds burst) : cores_(cores), most_(cores * base::ToSeconds(burst)) {}

  // Accounts for `used` CPU time in the last `elapsed` wall time. Returns how long to stop the process; 0: let it run.
  base::nanoseconds Charge(base::nanoseconds used, base::nanoseconds elapsed) {
    balance_ = std::min(most_, balance_ + cores_ * base::ToSeconds(elapsed) - base::ToSeconds(used));
    return balance_ >= 0 ? base::nanoseconds(0) : base::FromSeconds(-balance_ / cores_);
  }

 private:
  double cores_;
  double most_;         // CPU seconds
  double balance_ = 0;  // CPU seconds
};

}  // namespace medley::localcluster

// How much of a batch each of several unlike devices gets, so that all end at the same time. Pure.
#pragma once

#include <vector>

#include "scheduler-service/devices/problem.h"

namespace medley::sched {

struct Shares {
  std::vector<double> shares;  // by device, at least 0; they sum to 1
  double seconds = 0;          // the longest time of a device
};

// The shares that minimise the longest time of work.At(share). A device whose fixed time alone is longer than that gets
// nothing; `work` must not be empty.
Shares BalancedShares(const std::vector<DeviceProblem::Work>& work);

// The same in whole samples: each device of the result gets at least one sample, unless there are fewer samples than
// devices; then some get none. The last sample of a batch goes where it delays the least.
Shares BalancedSamples(const std::vector<DeviceProblem::Work>& work, int samples);

}  // namespace medley::sched

// What has interrupted the job, how often it may, and when the next attempt follows.
#pragma once

#include <cstdint>

#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/recovery_budget.h"

namespace medley::worker {

struct RecoveryState {
  explicit RecoveryState(int max_fruitless) : budget(max_fruitless) {}

  Cause cause;  // of the last interruption, which users are shown
  RecoveryBudget budget;
  int64_t restarts = 0;
  base::SteadyTime waiting_since{};  // since when no generation could start
  base::SteadyTime retry_at{};       // nothing is tried again earlier
};

}  // namespace medley::worker

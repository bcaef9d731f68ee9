// What has interrupted the job, how often it may, and when the next attempt follows.
//
// Data in: interruptions, commits. It decides when the job gives up.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/recovery_budget.h"

namespace medley::worker {

struct CoreState;

struct RecoveryState {
  explicit RecoveryState(int max_fruitless) : budget(max_fruitless) {}

  Cause cause;  // of the last interruption, which users are shown
  RecoveryBudget budget;
  int64_t restarts = 0;
  base::SteadyTime waiting_since{};  // since when no generation could start
  base::SteadyTime retry_at{};       // nothing is tried again earlier
};

namespace recovery {

// Whether the budget is spent and the job has to fail.
Request GiveUp(const RecoveryState& state, const Cause& why);

void Restore(RecoveryState& own, const job::v1::CoordinatorState& journal);
void Blame(RecoveryState& own, const CoreState& view, const Cause& why);
// Users are shown this cause, whatever has been blamed meanwhile.
void ShowCause(RecoveryState& own, Cause cause);
// The generation in force stops. `counted`: in the budget.
void OnHalt(RecoveryState& own, const CoreState& view, const Cause& why, bool counted, base::SteadyTime now);
// A preparation was given up.
void OnAbandon(RecoveryState& own, const CoreState& view, RecoveryBudget::Weight weight, base::SteadyTime now);
void OnRestart(RecoveryState& own);     // of the coordinator
void OnNotAdopted(RecoveryState& own);  // members have to halt although another coordinator handed the job over
void OnPlan(RecoveryState& own, base::SteadyTime now);  // a new one
void OnCommit(RecoveryState& own, int64_t step);
void OnSetBack(RecoveryState& own, int64_t step);
void WaitFrom(RecoveryState& own, base::SteadyTime now);  // no generation could start since then
void RetryAt(RecoveryState& own, base::SteadyTime at);
void RetryNotBefore(RecoveryState& own, base::SteadyTime at);

}  // namespace recovery
}  // namespace medley::worker

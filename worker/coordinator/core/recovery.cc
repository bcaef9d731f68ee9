#include "worker/coordinator/core/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "worker/coordinator/core/state.h"

namespace medley::worker::recovery {
namespace {

RecoveryBudget::Weight WeightOf(job::v1::SwitchCause cause) {
  switch (cause) {
    case job::v1::SWITCH_CAUSE_MEMBER_LOST:
    case job::v1::SWITCH_CAUSE_SESSION_BROKEN:
    case job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN:  // usually the first sign of a loss
      return RecoveryBudget::Weight::kLoss;
    default:
      return RecoveryBudget::Weight::kFault;
  }
}

}  // namespace

Request GiveUp(const RecoveryState& state, const Cause& why) {
  if (!state.budget.spent()) return {};
  return FailRequest{fmt::format("gave up after {} interruptions without progress beyond step {}; the last one: {}",
                                 state.budget.interruptions(), state.budget.furthest_step(), why.text),
                     true};
}

void Restore(RecoveryState& own, const job::v1::CoordinatorState& journal) {
  own.restarts = journal.restarts();
  own.budget.Restore(journal.recovery());
  if (journal.outcome() == job::v1::JOB_PHASE_FAILED) own.budget.NewAttempt();
}

// Peers often notice a loss before the lost member's session ends, or fail again because of it. Their broken exchange
// is an effect, so it does not replace the loss as the cause.
void Blame(RecoveryState& own, const CoreState& view, const Cause& why) {
  const bool effect =
      why.kind == job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN && own.cause.kind == job::v1::SWITCH_CAUSE_MEMBER_LOST;
  if (view.generations.mode == Mode::kTraining || !effect) own.cause = why;
}

void ShowCause(RecoveryState& own, Cause cause) { own.cause = std::move(cause); }

void OnHalt(RecoveryState& own, const CoreState& view, const Cause& why, bool counted, base::SteadyTime now) {
  Blame(own, view, why);
  if (view.generations.mode == Mode::kTraining) ++own.restarts;
  if (counted) return;
  own.budget.Interrupted(WeightOf(why.kind));
  own.retry_at = now + own.budget.Pause(view.options.retry_wait);
}

void OnAbandon(RecoveryState& own, const CoreState& view, RecoveryBudget::Weight weight, base::SteadyTime now) {
  own.budget.Interrupted(weight);
  const bool fault = weight == RecoveryBudget::Weight::kFault;
  const base::nanoseconds least = fault ? view.options.retry_wait : base::nanoseconds(0);
  own.retry_at = now + std::max(own.budget.Pause(view.options.retry_wait), least);
}

void OnRestart(RecoveryState& own) {
  ++own.restarts;
  own.budget.Interrupted(RecoveryBudget::Weight::kLoss);
}

void OnNotAdopted(RecoveryState& own) { ++own.restarts; }

void OnPlan(RecoveryState& own, base::SteadyTime now) {
  own.budget.NewPlan();
  own.waiting_since = own.retry_at = now;
}

void OnCommit(RecoveryState& own, int64_t step) { own.budget.Committed(step); }

void OnSetBack(RecoveryState& own, int64_t step) {
  if (step > own.budget.furthest_step()) own.budget.Committed(step);
}

void WaitFrom(RecoveryState& own, base::SteadyTime now) { own.waiting_since = now; }

void RetryAt(RecoveryState& own, base::SteadyTime at) { own.retry_at = at; }

void RetryNotBefore(RecoveryState& own, base::SteadyTime at) { own.retry_at = std::max(own.retry_at, at); }

}  // namespace medley::worker::recovery

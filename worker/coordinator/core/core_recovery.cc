// CoordinatorCore: from a loss to the next generation (docs/design/runtime.md, "Why a few undo steps are enough").
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
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

// Records the cause that users are shown. Peers often notice a loss before the lost member's session ends, or fail
// again because of it. Their broken exchange is an effect, so it does not replace the loss as the cause.
void CoordinatorCore::Blame(const Cause& why) {
  const bool effect = why.kind == job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN &&
                      state_.recovery.cause.kind == job::v1::SWITCH_CAUSE_MEMBER_LOST;
  if (state_.generations.mode == Mode::kTraining || !effect) state_.recovery.cause = why;
}

void CoordinatorCore::BeginHalt(const Cause& why, Instant now, bool counted) {
  Log(true, fmt::format("generation {} stops at step {}: {}", state_.generations.active->generation,
                        state_.training.ledger->committed(), why.text));
  Blame(why);
  if (state_.generations.mode == Mode::kTraining) ++state_.recovery.restarts;
  if (!counted) {
    state_.recovery.budget.Interrupted(WeightOf(why.kind));
    state_.recovery.retry_at = now.steady + state_.recovery.budget.Pause(state_.options.retry_wait);
  }
  if (state_.generations.next) {
    job::v1::SessionResponse message;
    message.mutable_abandon()->set_generation(state_.generations.next->generation);
    for (const auto& [name, member] : state_.generations.next->members) {
      const bool holder = state_.generations.active->members.contains(name);
      if (!holder && Connected(member.peer) != nullptr) Send(member.peer, message);
    }
    state_.generations.next.reset();
  }
  state_.checkpoints.pending.reset();
  state_.evaluation.pending.reset();
  state_.generations.mode = Mode::kHalting;
  state_.generations.halt_deadline = now.steady + state_.options.halt_timeout;
  for (auto& [name, member] : state_.generations.active->members) HaltMember(member);
}

void CoordinatorCore::HaltMember(GenerationMember& member) {
  member.halted = false;
  job::v1::SessionResponse message;
  message.mutable_halt()->set_generation(state_.generations.active->generation);
  Send(member.peer, message);
}

void CoordinatorCore::OnHalted(const std::string& member, const job::v1::Halted& halted, Instant /*now*/) {
  if (state_.generations.mode != Mode::kHalting || halted.generation() != state_.generations.active->generation) return;
  const auto found = state_.generations.active->members.find(member);
  if (found == state_.generations.active->members.end()) return;
  found->second.halted = true;
  found->second.applied = halted.applied_step();
  found->second.undo_to = halted.undo_to_step();
  state_.training.max_applied = std::max(state_.training.max_applied, halted.applied_step());
}

bool CoordinatorCore::StateIsWhole() const {
  std::set<std::string> survivors;
  for (const auto& [name, member] : state_.generations.active->members) survivors.insert(name);
  return StateSurvives(state_.generations.active->plan, state_.generations.active->peers, survivors);
}

// Once all survivors have answered or timed out: determines the state's step and whether the state is complete.
void CoordinatorCore::ResolveHalt(Instant now) {
  if (state_.hand_over.adopting && now.steady < state_.hand_over.adopt_deadline) return;
  StopAdopting({job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "members did not follow to the new coordinator", ""});
  const bool late = now.steady >= state_.generations.halt_deadline;
  bool pending = false;
  std::vector<std::string> lost;
  for (const auto& [name, member] : state_.generations.active->members) {
    if (member.halted) continue;
    if (late) lost.push_back(name);
    pending = true;
  }
  if (pending && !late) return;
  for (const std::string& name : lost) {
    const job::v1::Peer& peer = state_.generations.active->members.at(name).peer;
    if (Connected(peer) != nullptr) {
      Log(true, name + " did not halt in time and is treated as lost");
      commands_.push_back(DropCommand{name, peer.instance()});
      state_.members.all.erase(name);
    }
    Blame({job::v1::SWITCH_CAUSE_MEMBER_LOST, name + " did not halt in time", name});
    state_.generations.active->members.erase(name);
  }
  if (!StateIsWhole()) return LoseState(state_.recovery.cause, now);
  // At the end, when only the exported model was evaluated: the last checkpoint has the state of the ledger.
  if (StateStep() != state_.training.ledger->committed()) return LoseState(state_.recovery.cause, now);
  int64_t t = std::numeric_limits<int64_t>::max();
  for (const auto& [name, member] : state_.generations.active->members) t = std::min(t, member.applied);
  for (const auto& [name, member] : state_.generations.active->members) {
    if (member.undo_to > t) {
      const std::string why =
          fmt::format("{} has applied step {} and cannot roll back to step {}", name, member.applied, t);
      return LoseState({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, name}, now);
    }
  }
  if (t < state_.training.ledger->committed() || t > state_.training.ledger->total_steps()) {
    const std::string why = fmt::format("the survivors can only continue from step {}, but step {} is committed", t,
                                        state_.training.ledger->committed());
    return LoseState({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, ""}, now);
  }
  SetLedger(t, state_.generations.active->generation);
  state_.generations.halted_step = t;
  state_.generations.mode = Mode::kHalted;
  state_.recovery.waiting_since = now.steady;
  GiveUp(state_.recovery.cause, now);
}

bool CoordinatorCore::GiveUp(const Cause& why, Instant now) {
  if (!state_.recovery.budget.spent()) return false;
  Fail(fmt::format("gave up after {} interruptions without progress beyond step {}; the last one: {}",
                   state_.recovery.budget.interruptions(), state_.recovery.budget.furthest_step(), why.text),
       true, now);
  return true;
}

void CoordinatorCore::LoseState(const Cause& why, Instant now) {
  Log(true, fmt::format("part of the state is lost ({}): rolling back to the last checkpoint", why.text));
  Blame(why);
  if (state_.generations.next) AbandonNext(why, std::nullopt, now);  // BeginHalt has counted it
  if (over()) return;
  state_.generations.from = std::max(state_.generations.from, state_.generations.active->generation);
  state_.generations.active.reset();
  state_.checkpoints.pending.reset();
  state_.generations.mode = Mode::kIdle;
  state_.restoring.found = false;
  state_.recovery.waiting_since = now.steady;
  Journal(now);
  GiveUp(why, now);
}

// Starts a generation from the survivors' state, with the first choice of plan and members that covers every stage.
void CoordinatorCore::AdvanceHalted(Instant now) {
  if (state_.generations.next || now.steady < state_.recovery.retry_at) return;
  const std::pair<const job::v1::ApplyPlanRequest*, Use> choices[] = {
      {&state_.generations.active->request, Use::kHolders},
      {&*state_.plans.desired, Use::kStaying},
      {&state_.generations.active->request, Use::kStaying},
      {&*state_.plans.desired, Use::kAll},
      {&state_.generations.active->request, Use::kAll}};
  for (const auto& [request, use] : choices) {
    RosterFit fit = Fit(*request, use);
    if (fit.covers) {
      const job::v1::ApplyPlanRequest copy = *request;
      return StartGeneration(copy, std::move(fit), job::v1::STATE_ORIGIN_PEERS, state_.recovery.cause, now);
    }
  }
}

// Starts a generation while no member holds the state: from the seed, or from a checkpoint.
void CoordinatorCore::AdvanceIdle(Instant now) {
  if (state_.generations.next) return;
  if (state_.ending.suspending) return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, state_.ending.message, now);
  if (!state_.plans.desired || now.steady < state_.recovery.retry_at) return;
  RosterFit fit = Fit(*state_.plans.desired, Use::kStaying);
  if (!fit.covers) fit = Fit(*state_.plans.desired, Use::kAll);  // a leaving member is better than none
  const base::nanoseconds patience =
      state_.generations.from > 0 ? state_.options.fold_in_wait : state_.options.member_wait;
  const bool late = fit.covers && now.steady - state_.recovery.waiting_since >= patience;
  if (!fit.full() && !late && !OnlyLeaversMissing(fit)) return;
  if (state_.options.checkpoints && !state_.restoring.found) {
    if (state_.restoring.finding) return;
    state_.restoring.finding = true;
    state_.restoring.find_deadline = now.steady + state_.options.volume_timeout;
    FindCheckpointCommand find{.reject_unreadable = state_.restoring.failed_searches >= state_.options.max_searches};
    for (const auto& [folder, why] : state_.restoring.unrestorable) find.unusable[folder] = why.reason;
    commands_.push_back(std::move(find));
    return;
  }
  const bool restore = state_.restoring.position.has_value();
  // Without an interruption this is a first start, or the job resumes after a suspension.
  const bool interrupted = state_.generations.from > 0 && !state_.recovery.cause.text.empty();
  Cause cause = interrupted ? state_.recovery.cause : PlanCause();
  if (restore && !state_.restoring.why_older.empty()) cause.text += "; " + state_.restoring.why_older;
  const job::v1::ApplyPlanRequest request = *state_.plans.desired;
  StartGeneration(request, std::move(fit), restore ? job::v1::STATE_ORIGIN_CHECKPOINT : job::v1::STATE_ORIGIN_INITIAL,
                  std::move(cause), now);
}

void CoordinatorCore::CheckDeadlines(Instant now) {
  if (state_.ending.suspending && now.steady >= state_.ending.suspend_deadline) {
    Log(true, "suspended without a checkpoint of the last steps, because it was not written in time");
    return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, state_.ending.message, now);
  }
  if (state_.generations.mode != Mode::kTraining && state_.plans.desired && !state_.generations.next &&
      !state_.restoring.finding && state_.generations.mode != Mode::kHalting &&
      now.steady - state_.recovery.waiting_since > state_.options.member_wait) {
    const double waited = base::ToSeconds(state_.options.member_wait);
    const std::string& cause = state_.recovery.cause.text;
    return Fail(fmt::format("no generation could start for {:.0f} s; missing members: {}{}", waited,
                            fmt::join(MissingMembers(), ", "), cause.empty() ? "" : "; the last cause: " + cause),
                true, now);
  }
  if (state_.restoring.finding && now.steady >= state_.restoring.find_deadline) {
    return Fail(
        fmt::format("the checkpoint volume did not answer within {:.0f} s while it was searched for a checkpoint",
                    base::ToSeconds(state_.options.volume_timeout)),
        true, now);
  }
  if (state_.checkpoints.writing && now.steady >= state_.checkpoints.writing->deadline) {
    const std::string folder = state_.checkpoints.writing->folder;  // a copy: the call below resets it
    OnManifestWritten(folder,
                      base::DeadlineExceeded("the checkpoint volume did not answer within {:.0f} s",
                                             base::ToSeconds(state_.options.volume_timeout)),
                      now);
    if (over()) return;
  }
  if (state_.ending.exporting && now.steady >= state_.ending.exporting->deadline) {
    OnExported(state_.ending.exporting->step,
               base::DeadlineExceeded("writing the model: the volume did not answer within {:.0f} s",
                                      base::ToSeconds(state_.options.volume_timeout)),
               now);
    if (over()) return;
  }
  if (state_.generations.next && now.steady >= state_.generations.next->deadline) {
    std::vector<std::string> late;
    for (const auto& [name, member] : state_.generations.next->members) {
      if (state_.generations.next->switching ? !member.ready : !member.warmed) late.push_back(name);
    }
    const char* what = state_.generations.next->switching ? "ready" : "warm";
    const std::string why = fmt::format("members that were not {} in time: {}", what, fmt::join(late, ", "));
    if (!late.empty())
      AbandonNext({job::v1::SWITCH_CAUSE_TIMEOUT, why, late.front()}, RecoveryBudget::Weight::kFault, now);
  }
  if (over() || state_.generations.mode != Mode::kTraining) return;
  if (state_.checkpoints.pending && !state_.checkpoints.pending->waiting.empty() &&
      now.steady >= state_.checkpoints.pending->deadline) {
    const std::string why =
        fmt::format("the checkpoint of step {} was not written in time; missing parts: {}",
                    state_.checkpoints.pending->step, fmt::join(state_.checkpoints.pending->waiting, ", "));
    const std::string folder = state_.checkpoints.pending->folder;
    state_.checkpoints.pending.reset();
    if (AllCommitted()) return Fail(why, true, now);
    CheckpointFailed(why, folder, now);
  }
  CheckEvaluation(now);
  if (state_.generations.mode != Mode::kTraining) return;
  if (state_.training.ledger->leased() > state_.training.ledger->committed() &&
      now.steady - state_.training.committed_at > state_.options.stall_timeout) {
    const std::string why =
        fmt::format("no step was committed for {:.0f} s", base::ToSeconds(state_.options.stall_timeout));
    BeginHalt({job::v1::SWITCH_CAUSE_TIMEOUT, why, ""}, now);
  }
}

}  // namespace medley::worker

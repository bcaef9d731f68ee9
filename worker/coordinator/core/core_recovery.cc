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
  const bool effect =
      why.kind == job::v1::SWITCH_CAUSE_EXCHANGE_BROKEN && last_interruption_.kind == job::v1::SWITCH_CAUSE_MEMBER_LOST;
  if (mode_ == Mode::kTraining || !effect) last_interruption_ = why;
}

void CoordinatorCore::BeginHalt(const Cause& why, Instant now, bool counted) {
  Log(true, fmt::format("generation {} stops at step {}: {}", active_->generation, ledger_->committed(), why.text));
  Blame(why);
  if (mode_ == Mode::kTraining) ++restarts_;
  if (!counted) {
    budget_.Interrupted(WeightOf(why.kind));
    retry_at_ = now.steady + budget_.Pause(options_.retry_wait);
  }
  if (next_) {
    job::v1::SessionResponse message;
    message.mutable_abandon()->set_generation(next_->generation);
    for (const auto& [name, member] : next_->members) {
      const bool holder = active_->members.contains(name);
      if (!holder && Connected(member.peer) != nullptr) Send(member.peer, message);
    }
    next_.reset();
  }
  checkpoint_.reset();
  evaluation_.reset();
  mode_ = Mode::kHalting;
  halt_deadline_ = now.steady + options_.halt_timeout;
  for (auto& [name, member] : active_->members) HaltMember(member);
}

void CoordinatorCore::HaltMember(GenerationMember& member) {
  member.halted = false;
  job::v1::SessionResponse message;
  message.mutable_halt()->set_generation(active_->generation);
  Send(member.peer, message);
}

void CoordinatorCore::OnHalted(const std::string& member, const job::v1::Halted& halted, Instant /*now*/) {
  if (mode_ != Mode::kHalting || halted.generation() != active_->generation) return;
  const auto found = active_->members.find(member);
  if (found == active_->members.end()) return;
  found->second.halted = true;
  found->second.applied = halted.applied_step();
  found->second.undo_to = halted.undo_to_step();
  max_applied_ = std::max(max_applied_, halted.applied_step());
}

bool CoordinatorCore::StateIsWhole() const {
  std::set<std::string> survivors;
  for (const auto& [name, member] : active_->members) survivors.insert(name);
  return StateSurvives(active_->plan, active_->peers, survivors);
}

// Once all survivors have answered or timed out: determines the state's step and whether the state is complete.
void CoordinatorCore::ResolveHalt(Instant now) {
  if (adopting_ && now.steady < adopt_deadline_) return;
  StopAdopting({job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "members did not follow to the new coordinator", ""});
  const bool late = now.steady >= halt_deadline_;
  bool pending = false;
  std::vector<std::string> lost;
  for (const auto& [name, member] : active_->members) {
    if (member.halted) continue;
    if (late) lost.push_back(name);
    pending = true;
  }
  if (pending && !late) return;
  for (const std::string& name : lost) {
    const job::v1::Peer& peer = active_->members.at(name).peer;
    if (Connected(peer) != nullptr) {
      Log(true, name + " did not halt in time and is treated as lost");
      commands_.push_back(DropCommand{name, peer.instance()});
      members_.erase(name);
    }
    Blame({job::v1::SWITCH_CAUSE_MEMBER_LOST, name + " did not halt in time", name});
    active_->members.erase(name);
  }
  if (!StateIsWhole()) return LoseState(last_interruption_, now);
  // At the end, when only the exported model was evaluated: the last checkpoint has the state of the ledger.
  if (StateStep() != ledger_->committed()) return LoseState(last_interruption_, now);
  int64_t t = std::numeric_limits<int64_t>::max();
  for (const auto& [name, member] : active_->members) t = std::min(t, member.applied);
  for (const auto& [name, member] : active_->members) {
    if (member.undo_to > t) {
      const std::string why =
          fmt::format("{} has applied step {} and cannot roll back to step {}", name, member.applied, t);
      return LoseState({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, name}, now);
    }
  }
  if (t < ledger_->committed() || t > ledger_->total_steps()) {
    const std::string why =
        fmt::format("the survivors can only continue from step {}, but step {} is committed", t, ledger_->committed());
    return LoseState({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, ""}, now);
  }
  SetLedger(t, active_->generation);
  halted_step_ = t;
  mode_ = Mode::kHalted;
  waiting_since_ = now.steady;
  GiveUp(last_interruption_, now);
}

bool CoordinatorCore::GiveUp(const Cause& why, Instant now) {
  if (!budget_.spent()) return false;
  Fail(fmt::format("gave up after {} interruptions without progress beyond step {}; the last one: {}",
                   budget_.interruptions(), budget_.furthest_step(), why.text),
       true, now);
  return true;
}

void CoordinatorCore::LoseState(const Cause& why, Instant now) {
  Log(true, fmt::format("part of the state is lost ({}): rolling back to the last checkpoint", why.text));
  Blame(why);
  if (next_) AbandonNext(why, std::nullopt, now);  // BeginHalt has counted it
  if (over()) return;
  from_generation_ = std::max(from_generation_, active_->generation);
  active_.reset();
  checkpoint_.reset();
  mode_ = Mode::kIdle;
  found_ = false;
  waiting_since_ = now.steady;
  Journal(now);
  GiveUp(why, now);
}

// Starts a generation from the survivors' state, with the first choice of plan and members that covers every stage.
void CoordinatorCore::AdvanceHalted(Instant now) {
  if (next_ || now.steady < retry_at_) return;
  const std::pair<const job::v1::ApplyPlanRequest*, Use> choices[] = {{&active_->request, Use::kHolders},
                                                                      {&*desired_, Use::kStaying},
                                                                      {&active_->request, Use::kStaying},
                                                                      {&*desired_, Use::kAll},
                                                                      {&active_->request, Use::kAll}};
  for (const auto& [request, use] : choices) {
    RosterFit fit = Fit(*request, use);
    if (fit.covers) {
      const job::v1::ApplyPlanRequest copy = *request;
      return StartGeneration(copy, std::move(fit), job::v1::STATE_ORIGIN_PEERS, last_interruption_, now);
    }
  }
}

// Starts a generation while no member holds the state: from the seed, or from a checkpoint.
void CoordinatorCore::AdvanceIdle(Instant now) {
  if (next_) return;
  if (suspending_) return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, message_, now);
  if (!desired_ || now.steady < retry_at_) return;
  RosterFit fit = Fit(*desired_, Use::kStaying);
  if (!fit.covers) fit = Fit(*desired_, Use::kAll);  // a leaving member is better than none
  const base::nanoseconds patience = from_generation_ > 0 ? options_.fold_in_wait : options_.member_wait;
  const bool late = fit.covers && now.steady - waiting_since_ >= patience;
  if (!fit.full() && !late && !OnlyLeaversMissing(fit)) return;
  if (options_.checkpoints && !found_) {
    if (finding_) return;
    finding_ = true;
    find_deadline_ = now.steady + options_.volume_timeout;
    FindCheckpointCommand find{.reject_unreadable = failed_searches_ >= options_.max_searches};
    for (const auto& [folder, why] : unrestorable_) find.unusable[folder] = why.reason;
    commands_.push_back(std::move(find));
    return;
  }
  const bool restore = restore_.has_value();
  // Without an interruption this is a first start, or the job resumes after a suspension.
  const bool interrupted = from_generation_ > 0 && !last_interruption_.text.empty();
  Cause cause = interrupted ? last_interruption_ : PlanCause();
  if (restore && !restores_older_.empty()) cause.text += "; " + restores_older_;
  const job::v1::ApplyPlanRequest request = *desired_;
  StartGeneration(request, std::move(fit), restore ? job::v1::STATE_ORIGIN_CHECKPOINT : job::v1::STATE_ORIGIN_INITIAL,
                  std::move(cause), now);
}

void CoordinatorCore::CheckDeadlines(Instant now) {
  if (suspending_ && now.steady >= suspend_deadline_) {
    Log(true, "suspended without a checkpoint of the last steps, because it was not written in time");
    return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, message_, now);
  }
  if (mode_ != Mode::kTraining && desired_ && !next_ && !finding_ && mode_ != Mode::kHalting &&
      now.steady - waiting_since_ > options_.member_wait) {
    const double waited = base::ToSeconds(options_.member_wait);
    const std::string& cause = last_interruption_.text;
    return Fail(fmt::format("no generation could start for {:.0f} s; missing members: {}{}", waited,
                            fmt::join(MissingMembers(), ", "), cause.empty() ? "" : "; the last cause: " + cause),
                true, now);
  }
  if (finding_ && now.steady >= find_deadline_) {
    return Fail(
        fmt::format("the checkpoint volume did not answer within {:.0f} s while it was searched for a checkpoint",
                    base::ToSeconds(options_.volume_timeout)),
        true, now);
  }
  if (writing_manifest_ && now.steady >= writing_manifest_->deadline) {
    const std::string folder = writing_manifest_->folder;  // a copy: the call below resets it
    OnManifestWritten(folder,
                      base::DeadlineExceeded("the checkpoint volume did not answer within {:.0f} s",
                                             base::ToSeconds(options_.volume_timeout)),
                      now);
    if (over()) return;
  }
  if (export_ && now.steady >= export_->deadline) {
    OnExported(export_->step,
               base::DeadlineExceeded("writing the model: the volume did not answer within {:.0f} s",
                                      base::ToSeconds(options_.volume_timeout)),
               now);
    if (over()) return;
  }
  if (next_ && now.steady >= next_->deadline) {
    std::vector<std::string> late;
    for (const auto& [name, member] : next_->members) {
      if (next_->switching ? !member.ready : !member.warmed) late.push_back(name);
    }
    const char* what = next_->switching ? "ready" : "warm";
    const std::string why = fmt::format("members that were not {} in time: {}", what, fmt::join(late, ", "));
    if (!late.empty())
      AbandonNext({job::v1::SWITCH_CAUSE_TIMEOUT, why, late.front()}, RecoveryBudget::Weight::kFault, now);
  }
  if (over() || mode_ != Mode::kTraining) return;
  if (checkpoint_ && !checkpoint_->waiting.empty() && now.steady >= checkpoint_->deadline) {
    const std::string why = fmt::format("the checkpoint of step {} was not written in time; missing parts: {}",
                                        checkpoint_->step, fmt::join(checkpoint_->waiting, ", "));
    const std::string folder = checkpoint_->folder;
    checkpoint_.reset();
    if (AllCommitted()) return Fail(why, true, now);
    CheckpointFailed(why, folder, now);
  }
  CheckEvaluation(now);
  if (mode_ != Mode::kTraining) return;
  if (ledger_->leased() > ledger_->committed() && now.steady - committed_at_ > options_.stall_timeout) {
    const std::string why = fmt::format("no step was committed for {:.0f} s", base::ToSeconds(options_.stall_timeout));
    BeginHalt({job::v1::SWITCH_CAUSE_TIMEOUT, why, ""}, now);
  }
}

}  // namespace medley::worker

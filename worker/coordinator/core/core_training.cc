// CoordinatorCore: leases, progress, and changes during training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/placement.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {

void CoordinatorCore::OnProgress(const std::string& member, const job::v1::Progress& progress, Instant now) {
  if (mode_ != Mode::kTraining || progress.generation() != active_->generation) return;
  const auto found = active_->members.find(member);
  if (found == active_->members.end()) return;
  GenerationMember& at = found->second;
  const int64_t step = progress.step();
  if (step != at.applied + 1 || step > ledger_->leased()) {
    const std::string why = fmt::format("{} reported step {} out of order, after step {}", member, step, at.applied);
    return BeginHalt({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, member}, now);
  }
  if (!std::isfinite(progress.loss_sum())) return Fail(fmt::format("diverged at step {}", step), false, now);
  if (progress.state_samples() != 0 && progress.state_samples() != ledger_->SamplesAt(step)) {
    return Fail(fmt::format("{} counts {} samples at step {}, the ledger counts {}", member, progress.state_samples(),
                            step, ledger_->SamplesAt(step)),
                false, now);
  }
  at.applied = step;
  max_applied_ = std::max(max_applied_, step);
  if (progress.loss_samples() > 0) {
    auto& [sum, samples] = losses_[step];
    sum += progress.loss_sum();
    samples += progress.loss_samples();
  }
  if (at.peer.slot().role() == job::v1::MEMBER_ROLE_TRAINER) {
    agreements_.Add(member, step, progress.compute_seconds(), progress.comm_seconds(), agreed_.contains(step));
    AddStepTime(at, progress.compute_seconds(), now);
    stage_times_.Add(at.peer.slot(), progress.compute_seconds(), progress.comm_seconds());
  }
  int64_t slowest = step;
  for (const auto& [name, other] : active_->members) slowest = std::min(slowest, other.applied);
  if (slowest == applied_) return;
  applied_ = slowest;
  agreements_.Reported(slowest);
  committed_at_ = now.steady;
  // Replicas that differ can return only to a step after which they agreed.
  const auto after = agreed_.upper_bound(slowest);
  if (!active_->averages) CommitTo(slowest, now);
  if (active_->averages && after != agreed_.begin()) CommitTo(*std::prev(after), now);
}

void CoordinatorCore::CommitTo(int64_t step, Instant now) {
  const bool first = first_plan_ && active_->request.plan().generation() == first_plan_->plan().generation();
  for (int64_t s = ledger_->committed() + 1; s <= step; ++s) {
    const StepRange range = ledger_->RangeOf(s);
    double loss = std::numeric_limits<double>::quiet_NaN();
    if (const auto found = losses_.find(s); found != losses_.end()) {
      loss = found->second.first / static_cast<double>(found->second.second);
      loss_.Add(loss);
      curve_.AddLoss(found->second.first, found->second.second);
      losses_.erase(found);
    }
    commands_.push_back(StepCommand{range, active_->generation, loss, agreed_.erase(s) > 0});
    if (s == drain_) commands_.push_back(DrainCommand{s, active_->generation});
    throughput_.Add(now.steady, range.count);
    if (s == ledger_->total_steps() || ledger_->RangeOf(s + 1).data_epoch != range.data_epoch) EndEpoch(range);
  }
  const absl::Status committed = ledger_->Commit(step);
  MEDLEY_CHECK(committed.ok(), std::string(committed.message()));
  cost_.Committed(now.steady, ledger_->SamplesAt(step), first);
  committed_at_ = now.steady;
  budget_.Committed(step);
}

void CoordinatorCore::EndEpoch(const StepRange& last) {
  const std::optional<double> loss = curve_.EndEpoch();
  if (!loss) return;
  Log(false, fmt::format("trained epoch {}/{} at step {} of {}: training loss {:.6g}", last.data_epoch + 1,
                         ledger_->epochs(), last.step, ledger_->total_steps(), *loss));
}

// Sets the ledger back (or forward, after a restore) to `step` and records the rollback in steps.jsonl.
void CoordinatorCore::SetLedger(int64_t step, int64_t generation) {
  for (int64_t s = ledger_->committed() + 1; s <= step; ++s) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    commands_.push_back(StepCommand{ledger_->RangeOf(s), generation, kUnknown, agreed_.contains(s)});
  }
  const absl::Status reset = ledger_->ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  if (step > budget_.furthest_step()) budget_.Committed(step);
  commands_.push_back(RollbackCommand{step, generation});
  losses_.clear();
  drain_ = 0;
  agreed_.clear();
  applied_ = step;
  curve_.RollBack(step);
  RollBackBest(step);
}

bool CoordinatorCore::AllLeased() const { return ledger_->AllLeased() || curve_.StopsAt(ledger_->committed()); }

bool CoordinatorCore::AllCommitted() const { return ledger_->AllCommitted() || curve_.StopsAt(ledger_->committed()); }

bool CoordinatorCore::HoldLeases() const {
  const bool keeps = KeepingBest() && Candidate() != nullptr;  // before training goes on
  return suspending_ || successor_ || evaluation_ || keeps ||
         (next_ && (next_->switching || (!checkpoint_ && AllWarmed())));
}

// A pipeline keeps lag + 1 steps open, and must not run dry before new leases arrive.
int64_t CoordinatorCore::LeaseAhead() const {
  const int64_t open = active_->lag > 1 ? 2 * (active_->lag + 1) : 1;
  return std::max<int64_t>(options_.lease_ahead, open);
}

void CoordinatorCore::DrainLeased() {
  const int64_t leased = ledger_->leased();
  if (active_->lag == 1 || leased == ledger_->committed() || drain_ == leased) return;
  drain_ = leased;
  job::v1::SessionResponse message;
  message.mutable_drain()->set_generation(active_->generation);
  message.mutable_drain()->set_step(leased);
  for (const auto& [name, member] : active_->members) Send(member.peer, message);
}

void CoordinatorCore::BeginAgreements(int64_t step, Instant now) {
  applied_ = step;
  agreed_at_ = now.steady;
  agreed_.clear();
  agreements_ = Agreements();
  if (!active_->averages) return;
  const absl::StatusOr<model::ExecutionPlan> plan = model::FromProto(active_->plan);
  MEDLEY_CHECK(plan.ok(), "a plan in force was checked when it was applied");
  for (const model::Sync& sync : model::SyncsOf(*plan)) {
    if (sync.kind == model::SyncKind::kAllreduce) agreements_ = Agreements(sync);
  }
}

bool CoordinatorCore::Settled() const {
  return !active_->averages || ledger_->leased() == ledger_->committed() || agreed_.contains(ledger_->leased());
}

job::v1::StepLease CoordinatorCore::LeaseStep(bool must_agree) {
  const StepRange range = ledger_->Lease();
  job::v1::StepLease step;
  step.set_step(range.step);
  step.set_data_epoch(range.data_epoch);
  step.set_first(range.first);
  step.set_count(range.count);
  if (!active_->averages) return step;
  step.set_agrees(agreements_.Next(must_agree || ledger_->AllLeased() || curve_.IsDue(*ledger_, range.step)));
  if (step.agrees()) agreed_.insert(range.step);
  return step;
}

void CoordinatorCore::LeaseSteps(bool even_if_none, Instant now) {
  const int64_t ahead = LeaseAhead();
  const int64_t open = ledger_->leased() - applied_;
  const bool pause = HoldLeases() || AllLeased() || curve_.IsDue(*ledger_, ledger_->leased());
  const bool draining = drain_ > ledger_->committed();  // to the end, so that steps.jsonl says it
  // No more work than that of a checkpoint interval is at risk, whatever the mode says.
  const bool late = agreed_.empty() && now.steady - agreed_at_ >= options_.checkpoint_interval;
  const bool settle = (pause || wants_checkpoint_ || late) && !Settled();  // by one more step, which agrees
  const bool hold = (pause && !settle) || draining || open > ahead / 2;
  if (pause) DrainLeased();
  if (hold && !even_if_none) return;
  job::v1::SessionResponse message;
  job::v1::Lease& lease = *message.mutable_lease();
  lease.set_generation(active_->generation);
  while (!hold && !ledger_->AllLeased() && ledger_->leased() - applied_ < ahead &&
         !curve_.IsDue(*ledger_, ledger_->leased())) {
    *lease.add_steps() = LeaseStep(settle);
    if (lease.steps().rbegin()->agrees()) agreed_at_ = now.steady;
    if (settle) break;
  }
  if (lease.steps().empty() && !even_if_none) return;
  if (open == 0) committed_at_ = std::max(committed_at_, now.steady);
  for (const auto& [name, member] : active_->members) Send(member.peer, message);
}

void CoordinatorCore::AdvanceTraining(Instant now) {
  if (next_ && next_->switching) return;
  if (next_ && AllLeased() && next_->restored_step == 0)
    AbandonNext({.text = "no further step is leased"}, std::nullopt, now);
  AdvanceCheckpoint(now);
  const bool evaluating = AdvanceEvaluation(now);
  if (!evaluating) AdvanceEnding(now);
  if (over() || mode_ != Mode::kTraining) return;
  ConsiderChange(now);
  if (evaluating) return;  // leases and checkpoints follow it
  const bool due = now.steady - checkpoint_at_ >= options_.checkpoint_interval;
  const bool boundary = next_ && AllWarmed();
  // A volume that completes checkpoints slowly gets no further one meanwhile, except before a member leaves.
  wants_checkpoint_ = ((due && !writing_manifest_) || checkpoint_wanted_) && !checkpoint_ && !boundary && !successor_ &&
                      !AllLeased() && ledger_->leased() > last_checkpoint_;
  if (wants_checkpoint_ && Settled()) {
    StartCheckpoint(ledger_->leased(), now);
    wants_checkpoint_ = false;
  }
  LeaseSteps(false, now);
}

bool CoordinatorCore::OnlyLeaversMissing(const RosterFit& fit) const {
  return fit.covers && std::all_of(fit.missing.begin(), fit.missing.end(), [&](const std::string& name) {
           const auto found = members_.find(name);
           return found != members_.end() && found->second.leaving;
         });
}

// Starts the next generation when one of these is possible: switch to a newer plan whose members are all connected,
// release a leaving member, or take in one that came back.
void CoordinatorCore::ConsiderChange(Instant now) {
  if (next_ || suspending_ || successor_ || AllLeased() || now.steady < retry_at_ || budget_.spent()) {
    return;
  }
  if (desired_->plan().generation() != active_->request.plan().generation()) {
    RosterFit fit = Fit(*desired_, Use::kStaying);
    if (OnlyLeaversMissing(fit)) {
      checkpoint_wanted_ = false;
      return StartGeneration(*desired_, std::move(fit), job::v1::STATE_ORIGIN_PEERS, PlanCause(), now);
    }
  }
  ConsiderSamePlan(now);
}

void CoordinatorCore::ConsiderSamePlan(Instant now) {
  MarkSlowMembers(now);
  RosterFit fit = Fit(active_->request, Use::kStaying);
  std::string leaver;
  for (const auto& [name, member] : active_->members) {
    const ConnectedMember* connected = Connected(member.peer);
    if (connected != nullptr && connected->leaving) leaver = name;
  }
  if (!leaver.empty()) {
    // A leaving member that alone holds part of the state trains until it is lost. The checkpoint that PlanOut
    // requested keeps the lost work small.
    if (!fit.covers) return;
    checkpoint_wanted_ = false;
    return StartGeneration(active_->request, std::move(fit), job::v1::STATE_ORIGIN_PEERS,
                           {job::v1::SWITCH_CAUSE_MEMBER_LEFT, leaver + " leaves", leaver}, now);
  }
  checkpoint_wanted_ = false;
  if (LeaveOutSlow(fit, now)) return;
  std::string newcomer;
  base::SteadyTime since = now.steady;
  for (const job::v1::Peer& peer : fit.peers) {
    const std::string& name = peer.slot().member();
    if (active_->members.contains(name)) continue;
    newcomer = name;
    since = std::min(since, members_.at(name).since);
  }
  if (newcomer.empty() || !fit.covers) return;
  if (!fit.full() && now.steady - since < options_.fold_in_wait) return;
  StartGeneration(active_->request, std::move(fit), job::v1::STATE_ORIGIN_PEERS, ReturnCause(newcomer), now);
}

}  // namespace medley::worker

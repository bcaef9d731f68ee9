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
  if (state_.generations.mode != Mode::kTraining || progress.generation() != state_.generations.active->generation)
    return;
  const auto found = state_.generations.active->members.find(member);
  if (found == state_.generations.active->members.end()) return;
  GenerationMember& at = found->second;
  const int64_t step = progress.step();
  if (step != at.applied + 1 || step > state_.training.ledger->leased()) {
    const std::string why = fmt::format("{} reported step {} out of order, after step {}", member, step, at.applied);
    return BeginHalt({job::v1::SWITCH_CAUSE_MEMBER_FAULT, why, member}, now);
  }
  if (!std::isfinite(progress.loss_sum())) return Fail(fmt::format("diverged at step {}", step), false, now);
  if (progress.state_samples() != 0 && progress.state_samples() != state_.training.ledger->SamplesAt(step)) {
    return Fail(fmt::format("{} counts {} samples at step {}, the ledger counts {}", member, progress.state_samples(),
                            step, state_.training.ledger->SamplesAt(step)),
                false, now);
  }
  at.applied = step;
  state_.training.max_applied = std::max(state_.training.max_applied, step);
  if (progress.loss_samples() > 0) {
    auto& [sum, samples] = state_.training.losses[step];
    sum += progress.loss_sum();
    samples += progress.loss_samples();
  }
  if (at.peer.slot().role() == job::v1::MEMBER_ROLE_TRAINER) {
    state_.training.agreements.Add(member, step, progress.compute_seconds(), progress.comm_seconds(),
                                   state_.training.agreed.contains(step));
    AddStepTime(at, progress.compute_seconds(), now);
    state_.meters.stage_times.Add(at.peer.slot(), progress.compute_seconds(), progress.comm_seconds());
  }
  int64_t slowest = step;
  for (const auto& [name, other] : state_.generations.active->members) slowest = std::min(slowest, other.applied);
  if (slowest == state_.training.applied) return;
  state_.training.applied = slowest;
  state_.training.agreements.Reported(slowest);
  state_.training.committed_at = now.steady;
  // Replicas that differ can return only to a step after which they agreed.
  const auto after = state_.training.agreed.upper_bound(slowest);
  if (!state_.generations.active->averages) CommitTo(slowest, now);
  if (state_.generations.active->averages && after != state_.training.agreed.begin()) CommitTo(*std::prev(after), now);
}

void CoordinatorCore::CommitTo(int64_t step, Instant now) {
  const bool first = state_.plans.first &&
                     state_.generations.active->request.plan().generation() == state_.plans.first->plan().generation();
  for (int64_t s = state_.training.ledger->committed() + 1; s <= step; ++s) {
    const StepRange range = state_.training.ledger->RangeOf(s);
    double loss = std::numeric_limits<double>::quiet_NaN();
    if (const auto found = state_.training.losses.find(s); found != state_.training.losses.end()) {
      loss = found->second.first / static_cast<double>(found->second.second);
      state_.meters.loss.Add(loss);
      state_.evaluation.curve.AddLoss(found->second.first, found->second.second);
      state_.training.losses.erase(found);
    }
    commands_.push_back(
        StepCommand{range, state_.generations.active->generation, loss, state_.training.agreed.erase(s) > 0});
    if (s == state_.training.drain) commands_.push_back(DrainCommand{s, state_.generations.active->generation});
    state_.meters.throughput.Add(now.steady, range.count);
    if (s == state_.training.ledger->total_steps() ||
        state_.training.ledger->RangeOf(s + 1).data_epoch != range.data_epoch)
      EndEpoch(range);
  }
  const absl::Status committed = state_.training.ledger->Commit(step);
  MEDLEY_CHECK(committed.ok(), std::string(committed.message()));
  state_.meters.cost.Committed(now.steady, state_.training.ledger->SamplesAt(step), first);
  state_.training.committed_at = now.steady;
  state_.recovery.budget.Committed(step);
}

void CoordinatorCore::EndEpoch(const StepRange& last) {
  const std::optional<double> loss = state_.evaluation.curve.EndEpoch();
  if (!loss) return;
  Log(false, fmt::format("trained epoch {}/{} at step {} of {}: training loss {:.6g}", last.data_epoch + 1,
                         state_.training.ledger->epochs(), last.step, state_.training.ledger->total_steps(), *loss));
}

// Sets the ledger back (or forward, after a restore) to `step` and records the rollback in steps.jsonl.
void CoordinatorCore::SetLedger(int64_t step, int64_t generation) {
  for (int64_t s = state_.training.ledger->committed() + 1; s <= step; ++s) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    commands_.push_back(
        StepCommand{state_.training.ledger->RangeOf(s), generation, kUnknown, state_.training.agreed.contains(s)});
  }
  const absl::Status reset = state_.training.ledger->ResetTo(step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  if (step > state_.recovery.budget.furthest_step()) state_.recovery.budget.Committed(step);
  commands_.push_back(RollbackCommand{step, generation});
  state_.training.losses.clear();
  state_.training.drain = 0;
  state_.training.agreed.clear();
  state_.training.applied = step;
  state_.evaluation.curve.RollBack(step);
  RollBackBest(step);
}

bool CoordinatorCore::AllLeased() const {
  return state_.training.ledger->AllLeased() || state_.evaluation.curve.StopsAt(state_.training.ledger->committed());
}

bool CoordinatorCore::AllCommitted() const {
  return state_.training.ledger->AllCommitted() || state_.evaluation.curve.StopsAt(state_.training.ledger->committed());
}

bool CoordinatorCore::HoldLeases() const {
  const bool keeps = KeepingBest() && Candidate() != nullptr;  // before training goes on
  return state_.ending.suspending || state_.hand_over.successor || state_.evaluation.pending || keeps ||
         (state_.generations.next &&
          (state_.generations.next->switching || (!state_.checkpoints.pending && AllWarmed())));
}

// A pipeline keeps lag + 1 steps open, and must not run dry before new leases arrive.
int64_t CoordinatorCore::LeaseAhead() const {
  const int64_t open = state_.generations.active->lag > 1 ? 2 * (state_.generations.active->lag + 1) : 1;
  return std::max<int64_t>(state_.options.lease_ahead, open);
}

void CoordinatorCore::DrainLeased() {
  const int64_t leased = state_.training.ledger->leased();
  if (state_.generations.active->lag == 1 || leased == state_.training.ledger->committed() ||
      state_.training.drain == leased)
    return;
  state_.training.drain = leased;
  job::v1::SessionResponse message;
  message.mutable_drain()->set_generation(state_.generations.active->generation);
  message.mutable_drain()->set_step(leased);
  for (const auto& [name, member] : state_.generations.active->members) Send(member.peer, message);
}

void CoordinatorCore::BeginAgreements(int64_t step, Instant now) {
  state_.training.applied = step;
  state_.training.agreed_at = now.steady;
  state_.training.agreed.clear();
  state_.training.agreements = Agreements();
  if (!state_.generations.active->averages) return;
  const absl::StatusOr<model::ExecutionPlan> plan = model::FromProto(state_.generations.active->plan);
  MEDLEY_CHECK(plan.ok(), "a plan in force was checked when it was applied");
  for (const model::Sync& sync : model::SyncsOf(*plan)) {
    if (sync.kind == model::SyncKind::kAllreduce) state_.training.agreements = Agreements(sync);
  }
}

bool CoordinatorCore::Settled() const {
  return !state_.generations.active->averages ||
         state_.training.ledger->leased() == state_.training.ledger->committed() ||
         state_.training.agreed.contains(state_.training.ledger->leased());
}

job::v1::StepLease CoordinatorCore::LeaseStep(bool must_agree) {
  const StepRange range = state_.training.ledger->Lease();
  job::v1::StepLease step;
  step.set_step(range.step);
  step.set_data_epoch(range.data_epoch);
  step.set_first(range.first);
  step.set_count(range.count);
  if (!state_.generations.active->averages) return step;
  step.set_agrees(state_.training.agreements.Next(must_agree || state_.training.ledger->AllLeased() ||
                                                  state_.evaluation.curve.IsDue(*state_.training.ledger, range.step)));
  if (step.agrees()) state_.training.agreed.insert(range.step);
  return step;
}

void CoordinatorCore::LeaseSteps(bool even_if_none, Instant now) {
  const int64_t ahead = LeaseAhead();
  const int64_t open = state_.training.ledger->leased() - state_.training.applied;
  const bool pause = HoldLeases() || AllLeased() ||
                     state_.evaluation.curve.IsDue(*state_.training.ledger, state_.training.ledger->leased());
  const bool draining =
      state_.training.drain > state_.training.ledger->committed();  // to the end, so that steps.jsonl says it
  // No more work than that of a checkpoint interval is at risk, whatever the mode says.
  const bool late =
      state_.training.agreed.empty() && now.steady - state_.training.agreed_at >= state_.options.checkpoint_interval;
  const bool settle = (pause || state_.checkpoints.due || late) && !Settled();  // by one more step, which agrees
  const bool hold = (pause && !settle) || draining || open > ahead / 2;
  if (pause) DrainLeased();
  if (hold && !even_if_none) return;
  job::v1::SessionResponse message;
  job::v1::Lease& lease = *message.mutable_lease();
  lease.set_generation(state_.generations.active->generation);
  while (!hold && !state_.training.ledger->AllLeased() &&
         state_.training.ledger->leased() - state_.training.applied < ahead &&
         !state_.evaluation.curve.IsDue(*state_.training.ledger, state_.training.ledger->leased())) {
    *lease.add_steps() = LeaseStep(settle);
    if (lease.steps().rbegin()->agrees()) state_.training.agreed_at = now.steady;
    if (settle) break;
  }
  if (lease.steps().empty() && !even_if_none) return;
  if (open == 0) state_.training.committed_at = std::max(state_.training.committed_at, now.steady);
  for (const auto& [name, member] : state_.generations.active->members) Send(member.peer, message);
}

void CoordinatorCore::AdvanceTraining(Instant now) {
  if (state_.generations.next && state_.generations.next->switching) return;
  if (state_.generations.next && AllLeased() && state_.generations.next->restored_step == 0)
    AbandonNext({.text = "no further step is leased"}, std::nullopt, now);
  AdvanceCheckpoint(now);
  const bool evaluating = AdvanceEvaluation(now);
  if (!evaluating) AdvanceEnding(now);
  if (over() || state_.generations.mode != Mode::kTraining) return;
  ConsiderChange(now);
  if (evaluating) return;  // leases and checkpoints follow it
  const bool due = now.steady - state_.checkpoints.started_at >= state_.options.checkpoint_interval;
  const bool boundary = state_.generations.next && AllWarmed();
  // A volume that completes checkpoints slowly gets no further one meanwhile, except before a member leaves.
  state_.checkpoints.due = ((due && !state_.checkpoints.writing) || state_.checkpoints.wanted) &&
                           !state_.checkpoints.pending && !boundary && !state_.hand_over.successor && !AllLeased() &&
                           state_.training.ledger->leased() > state_.checkpoints.last_step;
  if (state_.checkpoints.due && Settled()) {
    StartCheckpoint(state_.training.ledger->leased(), now);
    state_.checkpoints.due = false;
  }
  LeaseSteps(false, now);
}

bool CoordinatorCore::OnlyLeaversMissing(const RosterFit& fit) const {
  return fit.covers && std::all_of(fit.missing.begin(), fit.missing.end(), [&](const std::string& name) {
           const auto found = state_.members.all.find(name);
           return found != state_.members.all.end() && found->second.leaving;
         });
}

// Starts the next generation when one of these is possible: switch to a newer plan whose members are all connected,
// release a leaving member, or take in one that came back.
void CoordinatorCore::ConsiderChange(Instant now) {
  if (state_.generations.next || state_.ending.suspending || state_.hand_over.successor || AllLeased() ||
      now.steady < state_.recovery.retry_at || state_.recovery.budget.spent()) {
    return;
  }
  if (state_.plans.desired->plan().generation() != state_.generations.active->request.plan().generation()) {
    RosterFit fit = Fit(*state_.plans.desired, Use::kStaying);
    if (OnlyLeaversMissing(fit)) {
      state_.checkpoints.wanted = false;
      return StartGeneration(*state_.plans.desired, std::move(fit), job::v1::STATE_ORIGIN_PEERS, PlanCause(), now);
    }
  }
  ConsiderSamePlan(now);
}

void CoordinatorCore::ConsiderSamePlan(Instant now) {
  MarkSlowMembers(now);
  RosterFit fit = Fit(state_.generations.active->request, Use::kStaying);
  std::string leaver;
  for (const auto& [name, member] : state_.generations.active->members) {
    const ConnectedMember* connected = Connected(member.peer);
    if (connected != nullptr && connected->leaving) leaver = name;
  }
  if (!leaver.empty()) {
    // A leaving member that alone holds part of the state trains until it is lost. The checkpoint that PlanOut
    // requested keeps the lost work small.
    if (!fit.covers) return;
    state_.checkpoints.wanted = false;
    return StartGeneration(state_.generations.active->request, std::move(fit), job::v1::STATE_ORIGIN_PEERS,
                           {job::v1::SWITCH_CAUSE_MEMBER_LEFT, leaver + " leaves", leaver}, now);
  }
  state_.checkpoints.wanted = false;
  if (LeaveOutSlow(fit, now)) return;
  std::string newcomer;
  base::SteadyTime since = now.steady;
  for (const job::v1::Peer& peer : fit.peers) {
    const std::string& name = peer.slot().member();
    if (state_.generations.active->members.contains(name)) continue;
    newcomer = name;
    since = std::min(since, state_.members.all.at(name).since);
  }
  if (newcomer.empty() || !fit.covers) return;
  if (!fit.full() && now.steady - since < state_.options.fold_in_wait) return;
  StartGeneration(state_.generations.active->request, std::move(fit), job::v1::STATE_ORIGIN_PEERS,
                  ReturnCause(newcomer), now);
}

}  // namespace medley::worker

// CoordinatorCore: what concerns ask for. Each function tells every concern that the event affects.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "worker/coordinator/core/core.h"
#include "worker/coordinator/core/row_moves.h"

namespace medley::worker {

void CoordinatorCore::Do(const Request& request, Instant now) {
  if (const auto* halt = std::get_if<HaltRequest>(&request)) BeginHalt(halt->why, now);
  if (const auto* fail = std::get_if<FailRequest>(&request)) Fail(fail->why, fail->retryable, now);
  if (const auto* abandon = std::get_if<AbandonRequest>(&request)) Abandon(abandon->why, abandon->weight, now);
  if (const auto* refuse = std::get_if<RefuseRequest>(&request)) Refuse(refuse->member, refuse->message, now);
  if (const auto* prepare = std::get_if<PrepareRequest>(&request)) Prepare(*prepare, now);
  if (const auto* save = std::get_if<SaveFailedRequest>(&request)) SaveFailed(save->why, save->folder, now);
  if (const auto* drop = std::get_if<DropBestRequest>(&request)) {
    exported_model::DropBest(state_.best, state_, drop->why, out_);
  }
}

void CoordinatorCore::Prepare(const PrepareRequest& request, Instant now) {
  if (request.restored_step > 0) {
    restoring::TakePosition(state_.restoring, exported_model::PositionOf(state_));
    evaluations::Drop(state_.evaluation);
  }
  const bool reads = request.origin == job::v1::STATE_ORIGIN_CHECKPOINT && request.restored_step == 0;
  if (reads && row_moves::IsWanted(state_)) {
    restoring::TakePosition(state_.restoring, row_moves::PositionOf(state_));
  }
  generations::Begin(state_.generations, state_, request, now.steady);
  Journal(now);
  generations::Announce(state_, out_);
}

void CoordinatorCore::Abandon(const Cause& why, std::optional<RecoveryBudget::Weight> weight, Instant now) {
  const GenerationsState& generations = state_.generations;
  out_.Log(weight == RecoveryBudget::Weight::kFault,
           fmt::format("abandoned generation {}: {}", generations.next->generation, why.text));
  recovery::Blame(state_.recovery, state_, why);
  restoring::SearchAgain(state_.restoring);
  if (weight) recovery::OnAbandon(state_.recovery, state_, *weight, now.steady);
  if (generations.mode != Mode::kTraining && GiveUp(why, now)) return;
  // Halt brings members of the old generation back to it; Abandon makes the others drop the new one.
  if (generations.next->switching && generations.active) return BeginHalt(why, now, weight.has_value());
  generations::Abandon(state_.generations, state_, out_);
  recovery::WaitFrom(state_.recovery, now.steady);
}

// The job trains on with the plan in force. It fails only when no members hold its state. `member` and `message` are
// copies: they may be of the generation that ends here.
void CoordinatorCore::Refuse(std::string member, std::string message, Instant now) {
  const std::optional<GenerationInfo>& active = state_.generations.active;
  if (!active) return Fail(fmt::format("{}: {}", member, message), false, now);
  const int64_t plan = state_.generations.next->request.plan().generation();
  const bool same_plan = plan == active->request.plan().generation();
  const bool replacement = same_plan && !active->members.contains(member);
  if (!same_plan) {
    plans::Refuse(state_.plans, active->request, plan, member, message);
    Journal(now);
  }
  Abandon({job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", member, message), member},
          RecoveryBudget::Weight::kFault, now);
  if (replacement) members::Release(state_.members, member, 1, message, out_);  // the plan runs without it
}

// The plan stays the wanted one: it becomes possible as soon as new pods take the places of these members.
bool CoordinatorCore::Reject(const data_check::WrongMembers& wrong, Instant now) {
  if (wrong.empty()) return false;
  Abandon({job::v1::SWITCH_CAUSE_MEMBER_FAULT, wrong.front().second, wrong.front().first},
          RecoveryBudget::Weight::kFault, now);
  if (over()) return true;
  for (const auto& [name, why] : wrong) {
    out_.Log(true, "refused a member: " + why);
    members::Release(state_.members, name, 1, why, out_);
  }
  return true;
}

void CoordinatorCore::ReleaseStandby(const std::string& member, const std::string& why, Instant now) {
  if (standing_by::IsToRelease(state_, member)) members::Release(state_.members, member, 0, why, out_);
  standing_by::Remove(state_.standing_by, member, now.steady);
}

// After a holder of the state was removed from the generation in force.
void CoordinatorCore::LoseHolder(const Cause& why, Instant now) {
  const GenerationsState& generations = state_.generations;
  if (generations.mode == Mode::kTraining) return BeginHalt(why, now);
  StopAdopting(why);
  recovery::Blame(state_.recovery, state_, why);
  if (generations.mode == Mode::kHalted && generations.next) Abandon(why, RecoveryBudget::Weight::kLoss, now);
  if (generations.mode != Mode::kHalted || generations::StateIsWhole(*generations.active)) return;
  LoseUnlessRebuilt(generations.halted_step, now);
}

// Rows of lost servers are rebuilt at this step, or all members return to the checkpoint. Returns whether they do.
bool CoordinatorCore::LoseUnlessRebuilt(int64_t step, Instant now) {
  const auto plan = rebuilding::Plan(state_, step);
  const std::string* why_not = std::get_if<std::string>(&plan);
  if (why_not != nullptr) LoseState(rebuilding::Explained(state_.recovery.cause, *why_not), now);
  return why_not != nullptr;
}

void CoordinatorCore::BeginHalt(const Cause& why, Instant now, bool counted) {
  out_.Log(true, fmt::format("generation {} stops at step {}: {}", active_generation(),
                             state_.training.ledger->committed(), why.text));
  recovery::OnHalt(state_.recovery, state_, why, counted, now.steady);
  generations::BeginHalt(state_.generations, state_, now.steady, out_);
  checkpoints::Drop(state_.checkpoints);
  evaluations::Drop(state_.evaluation);
  // Whoever leads next knows by it what was trained until now, also if that is rolled back.
  Journal(now, true);
}

bool CoordinatorCore::GiveUp(const Cause& why, Instant now) {
  const Request request = recovery::GiveUp(state_.recovery, why);
  Do(request, now);
  return !IsNothing(request);
}

void CoordinatorCore::LoseState(const Cause& why, Instant now) {
  out_.Log(true, fmt::format("part of the state is lost ({}): rolling back to the last checkpoint", why.text));
  recovery::Blame(state_.recovery, state_, why);
  if (state_.generations.next) Abandon(why, std::nullopt, now);  // BeginHalt has counted it
  if (over()) return;
  generations::LoseState(state_.generations);
  checkpoints::Drop(state_.checkpoints);
  restoring::SearchAgain(state_.restoring);
  recovery::WaitFrom(state_.recovery, now.steady);
  Journal(now);
  GiveUp(why, now);
}

void CoordinatorCore::SetLedger(int64_t step, int64_t generation) {
  training::SetBack(state_.training, step, generation, out_);
  recovery::OnSetBack(state_.recovery, step);
  state_.meters.activity.SetBack(step);
  evaluations::RollBack(state_.evaluation, step);
  exported_model::RollBack(state_.best, step);
}

void CoordinatorCore::PutInForce(Instant now) {
  if (rebuilding::LosesPushes(state_)) checkpoints::Ask(state_.checkpoints, true);
  switches::Record(state_.switches, state_, now);
  const std::vector<job::v1::Peer> placeless = generations::PutInForce(state_.generations, state_);
  const GenerationInfo& active = *state_.generations.active;
  for (const job::v1::Peer& peer : placeless) {
    standing_by::Remove(state_.standing_by, peer.slot().member(), now.steady);
    members::MarkReleased(state_.members, peer.slot().member());
  }
  restoring::Restored(state_.restoring);
  if (active.restored_step > 0) exported_model::InForce(state_.best);
  state_.meters.throughput.Reset(now.steady);
  state_.meters.stage_times.Reset();
  state_.meters.row_tiers.Reset();
  state_.meters.device_tables.Reset();
  state_.meters.cost.Pause();
  state_.meters.activity.Begin(now.wall, active.step, state_.training.ledger->SamplesAt(active.step));
  training::Begin(state_.training, state_, active.step, now.steady);
  const std::string why = "the new generation has no place for this member";
  for (const std::string& name : standing_by::Update(state_.standing_by, state_, now.steady)) {
    ReleaseStandby(name, why, now);
  }
  standing_by::Begin(state_.standing_by, state_);
  Journal(now);
  out_.Add(FenceCommand{active.generation});
  out_.Log(false, fmt::format("generation {} {} step {}", active.generation,
                              active.restored_step > 0 ? "holds the exported model, of" : "trains from", active.step));
  training::LeaseSteps(state_.training, state_, true, now.steady, out_);
  job::v1::SessionResponse release;
  release.mutable_release()->set_reason(why);
  for (const job::v1::Peer& peer : placeless) out_.Send(peer, release);
}

// Every member holds the state of the last committed step: the generation trains on.
void CoordinatorCore::Adopt(Instant now) {
  const job::v1::HandedOver from = *state_.hand_over.adopting;
  checkpoints::TakeOver(state_.checkpoints, state_, from.checkpoint_attempts(), now.steady);
  hand_over::EndAdopting(state_.hand_over);
  generations::TrainOn(state_.generations);
  const int64_t step = state_.training.ledger->committed();
  state_.meters.activity.Begin(now.wall, step, state_.training.ledger->SamplesAt(step));
  training::Begin(state_.training, state_, step, now.steady);
  standing_by::Begin(state_.standing_by, state_);
  recovery::ShowCause(state_.recovery, {});
  state_.meters.throughput.Reset(now.steady);
  state_.meters.cost.Pause();
  Journal(now);
  out_.Add(RollbackCommand{step, active_generation()});
  out_.Add(FenceCommand{active_generation()});
  out_.Log(false, fmt::format("took over: generation {} trains on from step {} after a pause of {:.3f} s",
                              active_generation(), step, base::ToSeconds(now.wall - hand_over::LastCommit(from))));
  training::LeaseSteps(state_.training, state_, true, now.steady, out_);
}

// The members that have come are asked to halt, as after a restart.
void CoordinatorCore::StopAdopting(const Cause& why) {
  if (!state_.hand_over.adopting) return;
  hand_over::EndAdopting(state_.hand_over);
  recovery::OnNotAdopted(state_.recovery);
  out_.Log(true, "the job cannot be taken over as it is: " + why.text);
  recovery::Blame(state_.recovery, state_, why);
  generations::HaltArrived(state_.generations, out_);
}

void CoordinatorCore::StartCheckpoint(int64_t step, Instant now) {
  checkpoints::Start(state_.checkpoints, state_, step, now.steady, out_);
}

// The job trains on, whatever is wrong with the volume. Only the end of the job must be saved.
void CoordinatorCore::SaveFailed(const std::string& why, const std::string& folder, Instant now) {
  checkpoints::Failed(state_.checkpoints, why, folder, now.wall, out_);
  if (state_.generations.mode != Mode::kTraining) return;
  if (const auto wait = exported_model::NotSaved(state_.best, state_, out_)) {
    recovery::RetryNotBefore(state_.recovery, now.steady + *wait);
  }
  if (!state_.ending.suspending && !training::AllCommitted(state_)) return;  // the next one is due as usual
  const checkpoints::EndFailure failure = checkpoints::FailedAtEnd(state_.checkpoints, state_, why, now.steady);
  recovery::RetryAt(state_.recovery, now.steady + failure.wait);
  Do(failure.request, now);
}

void CoordinatorCore::StartEvaluation(const EvaluationOrder& request, Instant now) {
  state_.meters.cost.Pause();
  evaluations::Start(state_.evaluation, state_, request, now.steady, out_);
}

// It was no pause of a switch, and no stall.
void CoordinatorCore::EndEvaluation(Instant now) {
  evaluations::Drop(state_.evaluation);
  state_.meters.throughput.Reset(now.steady);
  training::ResetPause(state_.training, now.steady);
}

void CoordinatorCore::Fail(const std::string& why, bool retryable, Instant now) {
  if (over()) return;
  Finish(job::v1::JOB_PHASE_FAILED, why, retryable, now);
}

void CoordinatorCore::Finish(job::v1::JobPhase outcome, const std::string& why, bool retryable, Instant now) {
  const bool failed = outcome == job::v1::JOB_PHASE_FAILED;
  ending::Finish(state_.ending, state_, outcome, why, retryable);
  out_.Log(failed, fmt::format("{}: {}", job::v1::JobPhase_Name(outcome), state_.ending.message));
  switches::Complete(state_.switches, now.steady);
  generations::End(state_.generations);
  checkpoints::Drop(state_.checkpoints);
  evaluations::Drop(state_.evaluation);
  Hold(now);
  Journal(now);
  members::ReleaseAll(state_.members, failed ? 1 : 0, state_.ending.message, out_);
  out_.Add(FinishCommand{!failed ? 0 : retryable ? 1 : 2});
}

}  // namespace medley::worker

// CoordinatorCore: every step that is possible now, and deadlines.
#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "common/model/rows_member.h"
#include "worker/coordinator/core/core.h"
#include "worker/coordinator/core/row_moves.h"

namespace medley::worker {

void CoordinatorCore::Advance(Instant now) {
  const GenerationsState& generations = state_.generations;
  const auto situation = [&] {
    return std::tuple(generations.mode, generations.last, generations.next.has_value(), active_generation());
  };
  // Each round changes the situation, or is the last one. The bound guards against an endless loop.
  for (int round = 0; round < 8 && !over() && !handed_over(); ++round) {
    if (state_.hand_over.successor && AdvanceHandOver(now)) return;
    const auto before = situation();
    if (generations.mode == Mode::kHalting) ResolveHalt(now);
    if (!over() && generations.next) AdvanceNext(now);
    if (!over() && generations.mode == Mode::kIdle) AdvanceIdle(now);
    if (!over() && generations.mode == Mode::kHalted && !generations.next) ContinueFromSurvivors(now);
    if (!over() && generations.mode == Mode::kTraining) AdvanceTraining(now);
    if (before == situation()) return;
  }
}

// Returns true when the job has been handed over: nothing may follow.
bool CoordinatorCore::AdvanceHandOver(Instant now) {
  if (!hand_over::IsPossible(state_)) return false;
  hand_over::Complete(state_.hand_over);
  Hold(now);
  Journal(now);
  hand_over::Redirect(state_, out_);
  return true;
}

void CoordinatorCore::OnReturn(Instant now) {
  const hand_over::Arrival arrival = hand_over::OnReturn(state_);
  if (arrival.wrong) return StopAdopting(*arrival.wrong);
  if (arrival.all) Adopt(now);
}

// Once all survivors have answered or timed out: determines the state's step and whether the state is complete.
void CoordinatorCore::ResolveHalt(Instant now) {
  if (state_.hand_over.adopting && now.steady < state_.hand_over.adopt_deadline) return;
  StopAdopting({job::v1::SWITCH_CAUSE_COORDINATOR_RESTARTED, "members did not follow to the new coordinator", ""});
  const std::optional<std::vector<std::string>> late = generations::LateMembers(state_, now.steady);
  if (!late) return;
  const GenerationInfo& active = *state_.generations.active;
  for (const std::string& name : *late) {
    const job::v1::Peer& peer = active.members.at(name).peer;
    if (members::Connected(state_.members, peer) != nullptr) {
      out_.Log(true, name + " did not halt in time and is treated as lost");
      out_.Add(DropCommand{name, peer.instance()});
      members::Remove(state_.members, name);
    }
    const std::string process = model::ProcessOf(name);
    recovery::Blame(state_.recovery, state_,
                    {job::v1::SWITCH_CAUSE_MEMBER_LOST, process + " did not halt in time", process});
    generations::Lose(state_.generations, name);
  }
  if (generations::HoldsNothing(active)) return LoseState(state_.recovery.cause, now);
  // At the end, when only the exported model was evaluated: the last checkpoint has the state of the ledger.
  const bool whole = generations::StateIsWhole(active);
  if ((!whole && !rebuilding::LacksOnlyRows(active)) ||
      generations::StateStep(state_) != state_.training.ledger->committed()) {
    return LoseState(state_.recovery.cause, now);
  }
  const std::variant<int64_t, Cause> meeting = generations::MeetingStep(state_);
  if (const Cause* why = std::get_if<Cause>(&meeting)) return LoseState(*why, now);
  const int64_t step = std::get<int64_t>(meeting);
  if (!whole && LoseUnlessRebuilt(step, now)) return;
  SetLedger(step, active.generation);
  generations::Halted(state_.generations, step);
  recovery::WaitFrom(state_.recovery, now.steady);
  GiveUp(state_.recovery.cause, now);
}

// A checkpoint may have become complete, or useless, since the survivors halted.
void CoordinatorCore::ContinueFromSurvivors(Instant now) {
  const GenerationsState& generations = state_.generations;
  if (!generations::StateIsWhole(*generations.active) && LoseUnlessRebuilt(generations.halted_step, now)) return;
  if (choices::NeedsCheckpoint(state_, now.steady)) return LoseState(state_.recovery.cause, now);
  Do(choices::FromSurvivors(state_, now.steady), now);
}

void CoordinatorCore::OnHalted(const std::string& member, const job::v1::Halted& halted) {
  if (!generations::OnHalted(state_.generations, member, halted)) return;
  training::SawApplied(state_.training, halted.applied_step());
}

void CoordinatorCore::OnWarmed(const std::string& member, const job::v1::Warmed& warmed, Instant now) {
  if (!generations::OnWarmed(state_.generations, member, warmed)) return;
  data_check::AddBadRows(state_.data, warmed.bad_rows());
  if (!generations::AllWarmed(*state_.generations.next)) return;
  if (Reject(data_check::WithOtherPrograms(*state_.generations.next), now)) return;
  const data_check::TrainingData data = data_check::CheckTraining(state_.data, state_);
  if (!data.wrong.empty() && data.hopeless) return Fail(data.wrong.front().second, false, now);
  if (Reject(data.wrong, now)) return;
  Do(training::CheckRows(state_.training, state_), now);
}

void CoordinatorCore::AdvanceNext(Instant now) {
  const GenerationInfo& next = *state_.generations.next;
  if (next.switching) {
    if (generations::AllReady(next)) PutInForce(now);
    return;
  }
  const std::optional<generations::SwitchPoint> at = generations::NextSwitch(state_);
  if (!at) return;
  if (at->sets_ledger) SetLedger(at->step, next.generation);
  generations::SendSwitch(state_.generations, state_, at->step, now.steady, out_);
}

// Starts a generation while no member holds the state: from the seed, or from a checkpoint.
void CoordinatorCore::AdvanceIdle(Instant now) {
  if (state_.generations.next) return;
  if (state_.ending.suspending) return Finish(job::v1::JOB_PHASE_SUSPENDED, state_.ending.message, true, now);
  std::optional<RosterFit> fit = choices::ToStart(state_, now.steady);
  if (!fit) return;
  const RestoringState& restoring = state_.restoring;
  if (!state_.options.checkpoints || restoring.found) {
    return Do(choices::FromCheckpoint(state_, *std::move(fit)), now);
  }
  if (!restoring.finding) restoring::Search(state_.restoring, state_, now.steady, out_);
}

void CoordinatorCore::OnProgress(const std::string& member, const job::v1::Progress& progress, Instant now) {
  const training::Progressed result = training::OnProgress(state_.training, state_, member, progress, now.steady);
  Do(result.request, now);
  if (result.trainer != nullptr) {
    if (progress.wants_checkpoint()) checkpoints::Ask(state_.checkpoints, false);
    standing_by::AddStepTime(state_.standing_by, state_, member, progress.compute_seconds(), now.steady);
    state_.meters.stage_times.Add(result.trainer->peer.slot(), progress);
    state_.meters.activity.Waited(result.trainer->peer.slot().pool(), progress);
  }
  if (progress.has_row_tiers()) state_.meters.row_tiers.Add(member, progress.row_tiers());
  if (progress.has_device_tables()) state_.meters.device_tables.Add(member, progress.device_tables());
  if (progress.has_resumed_from()) switches::ResumedFrom(state_.switches, progress.resumed_from());
  if (result.commit_to) CommitTo(*result.commit_to, now);
}

void CoordinatorCore::CommitTo(int64_t step, Instant now) {
  const Ledger& ledger = *state_.training.ledger;
  const bool began = state_.options.is_program && ledger.committed() == state_.generations.active->step;
  for (int64_t s = ledger.committed() + 1; s <= step; ++s) {
    const training::StepResult result = training::CommitStep(state_.training, state_, s, now.wall, out_);
    if (result.loss) {
      state_.meters.loss.Add(result.loss->first / static_cast<double>(result.loss->second));
      evaluations::AddLoss(state_.evaluation, result.loss->first, result.loss->second);
    }
    state_.meters.throughput.Add(now.steady, result.range.count);
    const bool last = s == ledger.total_steps() || ledger.RangeOf(s + 1).data_epoch != result.range.data_epoch;
    if (last) evaluations::EndEpoch(state_.evaluation, state_, result.range, out_);
  }
  training::Commit(state_.training, step, now.steady);
  const std::optional<job::v1::ApplyPlanRequest>& first = state_.plans.first;
  const int64_t plan = state_.generations.active->request.plan().generation();
  state_.meters.cost.Committed(now.steady, ledger.SamplesAt(step), first && plan == first->plan().generation());
  state_.meters.activity.Committed(now.steady, step, checkpoints::Steps(state_.checkpoints));
  recovery::OnCommit(state_.recovery, step);
  switches::Complete(state_.switches, now.steady);
  if (began) state_.meters.throughput.Reset(now.steady);  // what a program needs to start is not its rate
}

void CoordinatorCore::AdvanceTraining(Instant now) {
  const GenerationsState& generations = state_.generations;
  if (generations.next && generations.next->switching) return;
  if (generations.next && training::AllLeased(state_) && generations.next->restored_step == 0) {
    Abandon({.text = "no further step is leased"}, std::nullopt, now);
  }
  Do(checkpoints::Complete(state_.checkpoints, state_, now.steady, out_), now);
  const bool evaluating = AdvanceEvaluation(now);
  if (!evaluating) AdvanceEnding(now);
  if (over() || generations.mode != Mode::kTraining) return;
  ConsiderChange(now);
  if (evaluating) return;  // leases and checkpoints follow it
  if (checkpoints::Consider(state_.checkpoints, state_, now.steady)) {
    StartCheckpoint(state_.training.ledger->leased(), now);
  }
  training::LeaseSteps(state_.training, state_, false, now.steady, out_);
}

// Starts the next generation when one of these is possible: switch to a newer plan whose members are all connected,
// release a leaving member, or take in one that came back.
void CoordinatorCore::ConsiderChange(Instant now) {
  if (!choices::MayChange(state_, now.steady)) return;
  if (const Request plan = choices::NewPlan(state_); !IsNothing(plan)) {
    checkpoints::Want(state_.checkpoints, false, now.steady);
    return Do(plan, now);
  }
  if (row_moves::NeedsCheckpoint(state_)) return checkpoints::Ask(state_.checkpoints, true);
  standing_by::MarkSlow(state_.standing_by, state_, now);
  RosterFit fit = members::Fit(state_, state_.generations.active->request, members::Use::kStaying);
  const std::string leaver = choices::Leaver(state_);
  // A leaving member that alone holds part of the state trains until it is lost. The checkpoint that PlanOut requested
  // keeps the lost work small.
  if (!leaver.empty() && !fit.covers) return AwaitLoss(leaver, now);
  checkpoints::Want(state_.checkpoints, false, now.steady);
  if (!leaver.empty()) return Do(choices::Without(state_, leaver, std::move(fit)), now);
  const Request without_slow = standing_by::LeaveOut(state_.standing_by, state_, fit, now.steady);
  if (!IsNothing(without_slow)) return Do(without_slow, now);
  Do(choices::TakeBack(state_, std::move(fit), now.steady), now);
}

// A program that cannot run without a member that leaves saves before it is lost, and waits for another one.
void CoordinatorCore::AwaitLoss(const std::string& leaver, Instant now) {
  if (!state_.options.is_program || !state_.options.checkpoints) return;
  if (!checkpoints::StandsStill(state_)) return checkpoints::WantLast(state_.checkpoints, now.steady);
  BeginHalt({job::v1::SWITCH_CAUSE_MEMBER_LEFT, leaver + " leaves", leaver}, now, true);
  for (const auto& [name, member] : state_.generations.active->members) {
    const ConnectedMember* connected = members::Connected(state_.members, member.peer);
    if (connected == nullptr || !connected->leaving) continue;
    members::Release(state_.members, name, 0, "it leaves, and the program has saved its state", out_);
  }
}

// Evaluates between two steps when that is due. Returns true while nothing else may follow.
bool CoordinatorCore::AdvanceEvaluation(Instant now) {
  if (over() || state_.generations.mode != Mode::kTraining) return false;
  if (const std::optional<PendingEvaluation>& pending = state_.evaluation.pending) {
    if (pending->last || !pending->AllDone()) return !pending->last;
    RecordScores(now);
    EndEvaluation(now);
    Journal(now);  // before a lease depends on it
    return exported_model::IsKeeping(state_) && AdvanceBest(now);
  }
  if (exported_model::IsKeeping(state_) && AdvanceBest(now)) return true;
  if (!evaluations::IsDue(state_)) return false;
  StartEvaluation({false, state_.options.selection.data()}, now);
  return true;
}

void CoordinatorCore::RecordScores(Instant now) {
  if (evaluations::Record(state_.evaluation, state_, now.wall, out_)) Journal(now);
}

void CoordinatorCore::OnEvaluated(const std::string& member, const job::v1::Evaluated& part, Instant now) {
  if (!evaluations::Awaits(state_.evaluation, member)) return;
  if (const auto why = data_check::CheckEvaluated(state_.data, state_, member, part.test_digest())) {
    out_.Log(true, "refused a member: " + *why);
    members::Release(state_.members, member, 1, *why, out_);
    generations::Lose(state_.generations, member);
    return LoseHolder({job::v1::SWITCH_CAUSE_MEMBER_FAULT, *why, member}, now);
  }
  evaluations::OnEvaluated(state_.evaluation, state_, member, part, now.steady);
}

// Keeps the model of the committed step when it is the best so far. Returns true while its checkpoint is not complete.
bool CoordinatorCore::AdvanceBest(Instant now) {
  switch (exported_model::NextKeep(state_, now.steady)) {
    case exported_model::Keep::kNothing:
      return false;
    case exported_model::Keep::kNow:
      exported_model::KeepBest(state_.best, state_, out_);
      Journal(now);
      out_.Add(PruneCommand{state_.checkpoints.last_folder});
      return false;
    case exported_model::Keep::kWait:
      return true;
    case exported_model::Keep::kSave:
      StartCheckpoint(state_.training.ledger->committed(), now);
      return true;
  }
  return false;
}

void CoordinatorCore::AdvanceEnding(Instant now) {
  switch (ending::NextStep(state_, now.steady)) {
    case ending::Step::kNothing:
      return;
    case ending::Step::kSave:
      return StartCheckpoint(state_.training.ledger->committed(), now);
    case ending::Step::kSuspend:
      return Finish(job::v1::JOB_PHASE_SUSPENDED, state_.ending.message, true, now);
    case ending::Step::kEvaluate:
      break;
  }
  if (!AdvanceLastEvaluations(now) || over()) return;
  if (ending::IsExportMissing(state_)) return AdvanceExport(now);
  EndEvaluation(now);
  Finish(job::v1::JOB_PHASE_COMPLETE, ending::WhyComplete(state_), true, now);
}

// Takes the next step to the end of a job whose samples are trained and saved. Returns true when every evaluation has
// been made.
bool CoordinatorCore::AdvanceLastEvaluations(Instant now) {
  const EvaluationState& evaluation = state_.evaluation;
  if (evaluation.pending && !evaluation.pending->AllDone()) return false;
  if (evaluation.pending) RecordScores(now);
  const bool restored = state_.generations.active->restored_step > 0;
  if (!evaluation.curve.Knows(state_.training.ledger->committed()) && !restored) {
    StartEvaluation({true, state_.options.selection.data()}, now);
    return false;
  }
  if (AdvanceBest(now)) return false;
  if (const auto why = exported_model::WhyUnusable(state_)) {
    exported_model::DropBest(state_.best, state_, *why, out_);
  }
  const exported_model::LastEvaluation next = exported_model::NextEvaluation(state_);
  if (next.restores) Do(exported_model::RestoreModel(state_.best, state_, now.steady), now);
  if (next.evaluate) StartEvaluation(*next.evaluate, now);
  if (next.restores || next.evaluate) return false;
  evaluations::Show(state_.evaluation, exported_model::MetricsAtEnd(state_));
  exported_model::End(state_.best, state_);
  return true;
}

void CoordinatorCore::AdvanceExport(Instant now) {
  if (state_.ending.exporting || now.steady < state_.recovery.retry_at) return;
  Do(ending::Export(state_.ending, state_, Observe(now), now.steady, out_), now);
}

void CoordinatorCore::CheckDeadlines(Instant now) {
  if (ending::IsSuspensionLate(state_.ending, now.steady)) {
    out_.Log(true, "suspended without a checkpoint of the last steps, because it was not written in time");
    return Finish(job::v1::JOB_PHASE_SUSPENDED, state_.ending.message, true, now);
  }
  Do(choices::CheckDeadline(state_, now.steady), now);
  if (over()) return;
  Do(restoring::CheckDeadline(state_, now.steady), now);
  if (over()) return;
  const double volume_seconds = base::ToSeconds(state_.options.volume_timeout);
  if (const auto& writing = state_.checkpoints.writing; writing && now.steady >= writing->deadline) {
    const std::string folder = writing->folder;  // a copy: the call below resets it
    OnManifestWritten(
        folder, base::DeadlineExceeded("the checkpoint volume did not answer within {:.0f} s", volume_seconds), now);
    if (over()) return;
  }
  if (const auto& exporting = state_.ending.exporting; exporting && now.steady >= exporting->deadline) {
    OnExported(exporting->step,
               base::DeadlineExceeded("writing the model: the volume did not answer within {:.0f} s", volume_seconds),
               now);
    if (over()) return;
  }
  Do(generations::CheckDeadline(state_, now.steady), now);
  const Mode& mode = state_.generations.mode;
  if (over() || mode != Mode::kTraining) return;
  Do(checkpoints::CheckDeadline(state_.checkpoints, state_, now.steady), now);
  if (over()) return;
  Do(evaluations::CheckDeadline(state_, now.steady), now);
  if (mode != Mode::kTraining) return;
  Do(training::CheckDeadline(state_, now.steady), now);
}

}  // namespace medley::worker

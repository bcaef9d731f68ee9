// The coordinator's decisions: a state machine without I/O, threads or clock.
//
// Calls are its inputs. Its outputs are the commands that TakeCommands returns; the shell must carry them out in order.
// docs/design/runtime.md explains the states and why recovery works. Not thread-safe: the shell calls it under one
// lock.
//
//   core.OnMessage("job-trainer-0", "i-7", message, now);
//   for (Command& command : core.TakeCommands()) ...
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/coordinator/core/commands.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/roster.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker {

class CoordinatorCore {
 public:
  // `journal`: the last state that an earlier process of this coordinator wrote; nullopt at the first start.
  CoordinatorCore(CoreOptions options, Instant now, const std::optional<job::v1::CoordinatorState>& journal);

  // The operator's requests carry a leader term. A request with a term older than the newest served one is refused
  // (model::StaleTerm). A newer term is journaled before the request has any effect.
  //
  // Returns the generation that the plan has or will get. Errors: InvalidArgument; Unimplemented when the runtime does
  // not execute a part of the plan (common/model/executable.h), or rows would have to move between trainers and
  // parameter servers; those of program::Compile; FailedPrecondition when the
  // plan is older than the accepted one, or the job is over.
  absl::StatusOr<int64_t> ApplyPlan(const job::v1::ApplyPlanRequest& request, Instant now);
  absl::Status Drain(const std::vector<std::string>& members, int64_t leader_term, Instant now);
  absl::Status Suspend(const std::string& reason, int64_t leader_term, Instant now);

  // Another coordinator will lead: HandedOverCommand follows when every leased step is committed, or at once when
  // nothing trains. The largest term wins. Errors: FailedPrecondition (the job is over or being suspended, or a
  // coordinator with a larger term takes over), Unavailable (it has been handed over to another one).
  absl::Status HandOver(const job::v1::HandOverRequest& to, Instant now);
  void CancelHandOver(Instant now);  // training goes on under this coordinator

  // A message of a process, in the order sent. Messages before Hello are ignored.
  void OnMessage(const std::string& member, const std::string& instance, const job::v1::SessionRequest& message,
                 Instant now);
  // The session of this process ended and the process did not reconnect in time.
  void OnLost(const std::string& member, const std::string& instance, Instant now);
  // An error means that the volume could not be searched, not that it has no checkpoint.
  void OnCheckpointFound(const absl::StatusOr<CheckpointSearch>& found, Instant now);
  void OnManifestWritten(const std::string& folder, const absl::Status& status, Instant now);
  // The answer to the ExportCommand of `step`.
  void OnExported(int64_t step, const absl::Status& status, Instant now);
  // The journal could be written again, after a time in which no command was carried out.
  void OnVolumeReturned(Instant now);
  // Checks deadlines and intervals; call it about every 50 ms.
  void Tick(Instant now);

  std::vector<Command> TakeCommands() { return std::exchange(commands_, {}); }
  job::v1::Observation Observe(Instant now) const;

  // False: every connected member leaves, or none is connected.
  bool any_member_stays() const;
  bool handed_over() const { return state_.hand_over.handed_over; }  // further input has no effect
  int64_t successor_term() const {
    return state_.hand_over.successor ? state_.hand_over.successor->term() : 0;
  }  // 0: nobody takes over
  bool over() const { return state_.ending.over(); }
  int64_t active_generation() const { return state_.generations.active ? state_.generations.active->generation : 0; }
  const std::optional<Ledger>& ledger() const { return state_.training.ledger; }

 private:
  // core.cc: inputs
  absl::Status AcceptTerm(int64_t leader_term, Instant now);
  void PlanOut(const std::vector<std::string>& members, Instant now);
  void OnHello(const job::v1::Hello& hello, Instant now);
  void LoseHolder(const Cause& why, Instant now);
  void OnFault(const std::string& member, const job::v1::Fault& fault, Instant now);
  // Refuses next_ if the fault belongs to it; ignores a fault of a generation that has ended; otherwise the job fails.
  void OnPermanentFault(const std::string& member, const job::v1::Fault& fault, Instant now);
  absl::Status CheckPlan(const job::v1::ApplyPlanRequest& request) const;
  void Restore(const job::v1::CoordinatorState& journal, Instant now);
  void Advance(Instant now);  // takes every step that is possible now; called after every input
  void CheckDeadlines(Instant now);

  // core_generation.cc: preparing and switching
  void OnWarmed(const std::string& member, const job::v1::Warmed& warmed, Instant now);
  void OnReady(const std::string& member, const job::v1::Ready& ready, Instant now);
  // Which members may fill a slot: holders that stay, all members that stay, or leaving members too.
  enum class Use { kHolders, kStaying, kAll };
  // Without slow members, unless the plan cannot run without them.
  RosterFit Fit(const job::v1::ApplyPlanRequest& request, Use use) const;
  RosterFit FitWith(const job::v1::ApplyPlanRequest& request, Use use, bool standbys) const;
  void StartGeneration(const job::v1::ApplyPlanRequest& request, RosterFit fit, job::v1::StateOrigin origin,
                       Cause cause, Instant now);
  Cause PlanCause() const { return {job::v1::SWITCH_CAUSE_PLAN, state_.plans.desired->reason(), ""}; }
  void SendPrepare(job::v1::StateOrigin origin);
  // `weight`: how the interruption counts; nullopt: it is a decision, and does not.
  void AbandonNext(const Cause& why, std::optional<RecoveryBudget::Weight> weight, Instant now);
  // `member` cannot take part in next_, and a retry would not help: the job trains on with the plan in force. It fails
  // only when no members hold its state.
  void RefuseNext(std::string member, const std::string& message, Instant now);
  void ReleaseWithError(const std::string& member, const std::string& message);
  void AdvanceNext(Instant now);
  bool AdoptRows(Instant now);
  bool AllWarmed() const;
  void SendSwitch(int64_t step, Instant now);
  void PutInForce(Instant now);
  void RecordSwitch(Instant now);

  // core_data.cc
  bool CheckPrograms(Instant now);
  bool CheckTrainData(Instant now);
  bool CheckTestData(const std::string& member, const std::string& read, Instant now);

  // core_training.cc: leases, progress, changes while training
  void OnProgress(const std::string& member, const job::v1::Progress& progress, Instant now);
  void AdvanceTraining(Instant now);
  void ConsiderChange(Instant now);
  void ConsiderSamePlan(Instant now);
  bool OnlyLeaversMissing(const RosterFit& fit) const;
  void LeaseSteps(bool even_if_none, Instant now);
  int64_t LeaseAhead() const;
  job::v1::StepLease LeaseStep(bool must_agree);
  // Replicas agree after the last leased step, so leases may pause.
  bool Settled() const;
  void BeginAgreements(int64_t step, Instant now);
  // Lets the members complete the steps that an asynchronous schedule keeps open, before leases end for a while.
  void DrainLeased();
  void CommitTo(int64_t step, Instant now);
  void EndEpoch(const StepRange& last);  // its last step was committed
  void SetLedger(int64_t step, int64_t generation);
  bool HoldLeases() const;
  bool AllLeased() const;     // no step remains to be leased: all are, or training stops early
  bool AllCommitted() const;  // likewise

  // core_standby.cc: slow members
  bool StandsBy(const std::string& member) const;
  void RestoreStandbys(const job::v1::CoordinatorState& journal, Instant now);
  void BeginSlowMembers();
  void AddStepTime(const GenerationMember& member, double seconds, Instant now);
  void MarkSlowMembers(Instant now);
  bool LeaveOutSlow(const RosterFit& fit, Instant now);
  Cause ReturnCause(const std::string& newcomer) const;
  void UpdateStandbys(Instant now);
  void ReleaseStandby(const std::string& member, const std::string& why, Instant now);
  void OnProbed(const std::string& member, const job::v1::Probed& probed, Instant now);
  void SendProbes(Instant now);
  void FillLeftOut(job::v1::Observation& out) const;

  // core_recovery.cc
  void Blame(const Cause& why);
  void BeginHalt(const Cause& why, Instant now, bool counted = false);  // `counted`: in the budget
  void HaltMember(GenerationMember& member);
  void OnHalted(const std::string& member, const job::v1::Halted& halted, Instant now);
  void ResolveHalt(Instant now);
  void LoseState(const Cause& why, Instant now);
  bool GiveUp(const Cause& why, Instant now);  // whether the budget is spent and the job has failed
  void AdvanceHalted(Instant now);
  void AdvanceIdle(Instant now);
  bool StateIsWhole() const;

  // core_restore.cc: the checkpoint from which to continue
  void RetrySearch(const absl::Status& why, Instant now);
  void AdoptCheckpoint(const CheckpointPosition& newest);
  void OnRestoreFault(const std::string& member, const job::v1::Fault& fault, Instant now);
  absl::Status CheckPosition(const CheckpointPosition& position) const;
  void FailWithoutCheckpoint(const std::vector<std::string>& reasons, bool may_pass, Instant now);

  // core_evaluation.cc
  void OnEvaluating(const std::string& member, const job::v1::Evaluating& progress, Instant now);
  void OnEvaluated(const std::string& member, const job::v1::Evaluated& part, Instant now);
  // Evaluates between two steps when that is due. Returns true while nothing else may follow.
  bool AdvanceEvaluation(Instant now);
  void StartEvaluation(bool last, job::v1::EvaluationData data, Instant now);
  bool KeepingBest() const;
  void RecordScores(Instant now);  // once for an evaluation, and for a step
  void WarnOfCalibration(const std::map<std::string, double>& metrics);
  void RecordTest(const std::map<std::string, double>& metrics, Instant now);
  void EndEvaluation(Instant now);
  void CheckEvaluation(Instant now);  // its deadline

  // core_best.cc: the best model
  const job::v1::EvaluationRecord* Candidate() const;
  bool AdvanceBest(Instant now);
  void KeepBest(const job::v1::EvaluationRecord& record, Instant now);
  void BestNotSaved(Instant now);
  void RollBackBest(int64_t step);
  void DropBest(const std::string& why);
  void DropUnusableBest();
  int64_t ExportedStep() const;  // of the model that the job ends with
  int64_t StateStep() const;     // of the state that the members of active_ hold between two steps
  void RestoreExported(Instant now);
  bool AdvanceLastEvaluations(Instant now);

  // core_finish.cc: checkpoints, the finished model, the end
  void OnCheckpointed(const std::string& member, const job::v1::Checkpointed& done, Instant now);
  void StartCheckpoint(int64_t step, Instant now);
  void AdvanceCheckpoint(Instant now);
  void OnCheckpointFault(const std::string& member, const job::v1::Fault& fault, Instant now);
  // `folder`: of the checkpoint, whose files are removed; empty: none.
  void CheckpointFailed(const std::string& why, const std::string& folder, Instant now);
  void Saved();  // a checkpoint or the model was written
  void AdvanceEnding(Instant now);
  void AdvanceExport(Instant now);
  void Fail(const std::string& why, bool retryable, Instant now);
  void Finish(job::v1::JobPhase outcome, int exit_code, const std::string& why, Instant now);

  // core_hand_over.cc
  bool AdvanceHandOver(Instant now);
  job::v1::HandedOver Boundary(Instant now) const;
  void OnReturn(Instant now);
  void Adopt(Instant now);
  void StopAdopting(const Cause& why);

  // core_observe.cc
  job::v1::JobPhase Phase() const;
  std::vector<std::string> MissingMembers() const;
  void Journal(Instant now);
  job::v1::CoordinatorState DurableState(Instant now) const;
  void Hold(Instant now);

  void Send(const job::v1::Peer& to, job::v1::SessionResponse message);
  void Log(bool warning, std::string message) { commands_.push_back(LogCommand{warning, std::move(message)}); }
  const ConnectedMember* Connected(const job::v1::Peer& peer) const;

  std::vector<Command> commands_;
  CoreState state_;
  base::SteadyTime journaled_at_{};
};

}  // namespace medley::worker

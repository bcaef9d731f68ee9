// The coordinator's decisions: a state machine without I/O, threads or clock.
//
// It makes no decision itself: it passes each input to the concern that decides about it, and carries out what the
// concern asks for (effects.h) with the help of the others. state.h lists the concerns.
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
#include <vector>

#include "worker/coordinator/core/commands.h"
#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker {

class CoordinatorCore {
 public:
  // `journal`: the last state that an earlier process of this coordinator wrote; nullopt at the first start.
  // `line`: the last step in steps.jsonl.
  CoordinatorCore(CoreOptions options, Instant now, const std::optional<job::v1::CoordinatorState>& journal,
                  const CommittedStep& line = {});

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

  std::vector<Command> TakeCommands() { return out_.Take(); }
  job::v1::Observation Observe(Instant now) const;

  // False: every connected member leaves, or none is connected.
  bool any_member_stays() const { return members::AnyStays(state_.members); }
  bool handed_over() const { return state_.hand_over.handed_over; }  // further input has no effect
  // 0: nobody takes over
  int64_t successor_term() const { return state_.hand_over.successor ? state_.hand_over.successor->term() : 0; }
  bool over() const { return state_.ending.over(); }
  int64_t active_generation() const { return generations::ActiveOf(state_.generations); }
  const std::optional<Ledger>& ledger() const { return state_.training.ledger; }
  const CoreState& state() const { return state_; }

 private:
  // core.cc: inputs.
  void Restore(const job::v1::CoordinatorState& journal, const CommittedStep& line, Instant now);
  void RestoreActive(const job::v1::CoordinatorState& journal, Instant now);
  absl::Status AcceptTerm(int64_t leader_term, Instant now);
  void PlanOut(const std::vector<std::string>& names, Instant now);
  void OnHello(const job::v1::Hello& hello, Instant now);
  void OnFault(const std::string& member, const job::v1::Fault& fault, Instant now);
  void Journal(Instant now, bool periodic = false);
  void Hold(Instant now);  // what members cost and did until now
  bool IsPreparing() const;

  // core_requests.cc: what concerns ask for.
  void Do(const Request& request, Instant now);
  void Prepare(const PrepareRequest& request, Instant now);
  void Abandon(const Cause& why, std::optional<RecoveryBudget::Weight> weight, Instant now);
  void Refuse(std::string member, std::string message, Instant now);
  bool Reject(const data_check::WrongMembers& wrong, Instant now);  // whether any are wrong
  void ReleaseStandby(const std::string& member, const std::string& why, Instant now);
  void LoseHolder(const Cause& why, Instant now);
  bool LoseUnlessRebuilt(int64_t step, Instant now);
  void BeginHalt(const Cause& why, Instant now, bool counted = false);  // `counted`: in the budget
  bool GiveUp(const Cause& why, Instant now);
  void LoseState(const Cause& why, Instant now);
  void SetLedger(int64_t step, int64_t generation);
  void PutInForce(Instant now);
  void Adopt(Instant now);
  void StopAdopting(const Cause& why);
  void StartCheckpoint(int64_t step, Instant now);
  void SaveFailed(const std::string& why, const std::string& folder, Instant now);
  void StartEvaluation(const EvaluationOrder& request, Instant now);
  void EndEvaluation(Instant now);
  void Fail(const std::string& why, bool retryable, Instant now);
  void Finish(job::v1::JobPhase outcome, const std::string& why, bool retryable, Instant now);

  // core_advance.cc: every step that is possible now, and deadlines.
  void Advance(Instant now);  // called after every input
  bool AdvanceHandOver(Instant now);
  void OnReturn(Instant now);
  void ResolveHalt(Instant now);
  void ContinueFromSurvivors(Instant now);
  void OnHalted(const std::string& member, const job::v1::Halted& halted);
  void OnWarmed(const std::string& member, const job::v1::Warmed& warmed, Instant now);
  void AdvanceNext(Instant now);
  void AdvanceIdle(Instant now);
  void OnProgress(const std::string& member, const job::v1::Progress& progress, Instant now);
  void CommitTo(int64_t step, Instant now);
  void AdvanceTraining(Instant now);
  void ConsiderChange(Instant now);
  void AwaitLoss(const std::string& leaver, Instant now);
  bool AdvanceEvaluation(Instant now);
  void RecordScores(Instant now);
  void OnEvaluated(const std::string& member, const job::v1::Evaluated& part, Instant now);
  bool AdvanceBest(Instant now);
  void AdvanceEnding(Instant now);
  bool AdvanceLastEvaluations(Instant now);
  void AdvanceExport(Instant now);
  void CheckDeadlines(Instant now);

  CoreState state_;
  Effects out_;
  base::SteadyTime journaled_at_;
};

}  // namespace medley::worker

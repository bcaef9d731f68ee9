// Runs CoordinatorCore under one lock and carries out its commands. Has a timer thread, and threads for the journal,
// for checkpoints, for claims and for the log, so that a volume that does not answer blocks it for a bounded time only:
// the core has deadlines for checkpoints, and the engine one for the journal.
//
// Thread-safe. Sessions and RPC handlers call it. It owns the journal, steps.jsonl, metrics.jsonl, the
// log in the job's folder and the rendezvous store.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "worker/checkpoint/volume_thread.h"
#include "worker/claim/claims.h"
#include "worker/coordinator/core/core.h"
#include "worker/coordinator/server/hand_over.h"
#include "worker/coordinator/server/log_buffer.h"
#include "worker/coordinator/server/rendezvous.h"
#include "worker/coordinator/server/server.h"
#include "worker/coordinator/server/session.h"
#include "worker/coordinator/server/step_log.h"

namespace medley::worker {

class Engine {
 public:
  static absl::StatusOr<std::unique_ptr<Engine>> Start(CoordinatorOptions options, base::Clock& clock,
                                                       std::stop_token stop);
  ~Engine();  // Stop

  // For the operator.
  absl::StatusOr<int64_t> ApplyPlan(const job::v1::ApplyPlanRequest& request);
  absl::Status Drain(const std::vector<std::string>& members, int64_t leader_term);
  // Waits until the job is suspended and returns the step of its checkpoint. Errors: FailedPrecondition (the job ended
  // in another way, or the leader term is too old), Cancelled.
  absl::StatusOr<int64_t> Suspend(const std::string& reason, int64_t leader_term,
                                  const std::function<bool()>& cancelled);
  // Waits until the job is handed over. Errors: FailedPrecondition (the job is over or being suspended, or the term is
  // not larger), Cancelled.
  absl::Status HandOver(const job::v1::HandOverRequest& to, const std::function<bool()>& cancelled);
  job::v1::Observation Observe();
  bool over();
  // It can or may not go on; what it observed last is not reliable, because it may not be in the journal.
  bool gave_up();
  bool trains() const { return trains_; }  // the job is not over, and some member stays; never blocks
  void FinalObservationRead();             // a client has read the last observation: Wait no longer lingers for it

  // For members.
  void Open(const std::shared_ptr<Session>& session, const job::v1::SessionRequest& hello);
  void Receive(const std::shared_ptr<Session>& session, const job::v1::SessionRequest& message);
  void Close(const std::shared_ptr<Session>& session);
  RendezvousStore& rendezvous() { return rendezvous_; }

  // Waits until the job is over and the linger time has passed; returns the exit code, or -1 when stopped before.
  int Wait(std::stop_token stop);
  // Ends every session and every wait. Idempotent.
  void Stop();
  std::stop_token stop_token() const { return stop_.get_token(); }

 private:
  struct Folder;  // what the job's folder contains
  struct Link {
    std::shared_ptr<Session> session;  // null: broken
    std::string instance;
    base::SteadyTime broken_at;
  };

  Engine(CoordinatorOptions options, base::Clock& clock);
  Instant Now() const { return {clock_.Steady(), clock_.Now()}; }
  void Carry() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CarryHeld() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetryJournal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Prune(PruneCommand command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Discard(DiscardCheckpointCommand command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Carry(Command& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job is over or handed over.
  void Finish(int exit_code) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp(int exit_code, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens the job's folder; returns the state that an earlier process journaled. `lead`: how this coordinator came to
  // lead.
  absl::StatusOr<std::optional<job::v1::CoordinatorState>> OpenFolder(const Lead& lead, std::stop_token stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens the log and the event file. The job trains without those that cannot be opened.
  static void OpenRecords(const CoordinatorOptions& options, base::WallTime now, Folder& folder);
  static void WriteLog(Folder& folder, LogBuffer& lines);
  void Append(job::v1::CoordinatorState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AppendLater(job::v1::CoordinatorState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtRecord() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnRecord(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SyncRecords(Folder& folder);
  void WriteStep(std::function<absl::Status(Folder&)> write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushLog();  // passes the lines that wait on to the log's thread
  void LookForCheckpoint(const FindCheckpointCommand& command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CompleteManifest(WriteManifestCommand command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteModel(ExportCommand command) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the process when a newer coordinator has claimed the job, or nobody could tell for `journal_timeout`.
  void CheckClaim(const absl::StatusOr<Claim>& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtClaims() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The process cannot go on, or must not: the core's commands are not carried out any more, also when it believes that
  // the job is over, because that may not be in the journal.
  bool ends_early() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ends_early_; }
  absl::Status Refusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveResult();
  int Linger();
  bool Quiet() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // no member is connected
  void Tick();

  const CoordinatorOptions options_;
  base::Clock& clock_;
  const std::optional<Claims> claims_;  // of a coordinator with a checkpoint folder
  RendezvousStore rendezvous_;
  std::stop_source stop_;

  base::Mutex mutex_;
  base::CondVar changed_;
  // Null without a folder. Operations on the volume share its ownership.
  std::shared_ptr<Folder> folder_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<CoordinatorCore> core_ ABSL_GUARDED_BY(mutex_);
  Claim claim_ ABSL_GUARDED_BY(mutex_);                        // of this process; of term 0 without one
  std::map<std::string, Link> links_ ABSL_GUARDED_BY(mutex_);  // by member
  std::optional<int> exit_code_ ABSL_GUARDED_BY(mutex_);
  // The volume has no room for a record of the journal. No command is carried out until it has.
  struct JournalFull {
    job::v1::CoordinatorState state;
    absl::Status why;
    base::WallTime since;
  };
  std::optional<JournalFull> journal_full_ ABSL_GUARDED_BY(mutex_);
  // Periodic records that an object store does not take, since when and why; training goes on.
  struct JournalLate {
    absl::Status why;
    base::WallTime since;
  };
  std::optional<JournalLate> journal_late_ ABSL_GUARDED_BY(mutex_);
  // A periodic record that is written, or waits for that; null: none. Its thread must not take mutex_, whose owner may
  // wait for that thread (Append).
  struct PeriodicRecord {
    base::Mutex mutex;
    std::optional<absl::Status> result ABSL_GUARDED_BY(mutex);
  };
  std::shared_ptr<PeriodicRecord> record_ ABSL_GUARDED_BY(mutex_);
  base::SteadyTime journal_retry_ ABSL_GUARDED_BY(mutex_){};
  bool paused_before_ ABSL_GUARDED_BY(mutex_) = false;  // logged already
  std::deque<Command> held_ ABSL_GUARDED_BY(mutex_);    // not carried out yet
  bool ends_early_ ABSL_GUARDED_BY(mutex_) = false;
  bool final_read_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> trains_ = false;
  base::SteadyTime next_claim_check_ ABSL_GUARDED_BY(mutex_){};
  std::optional<base::SteadyTime> claims_unread_since_ ABSL_GUARDED_BY(mutex_);  // the first look of a row that failed
  int64_t hand_overs_ ABSL_GUARDED_BY(mutex_) = 0;                               // calls of HandOver so far

  VolumeThread journal_thread_;     // the journal, steps.jsonl and metrics.jsonl
  VolumeThread checkpoint_thread_;  // delivers its results under mutex_
  VolumeThread claim_thread_;       // looks for newer claims also while the others write; delivers under mutex_
  const std::shared_ptr<LogBuffer> log_lines_ = std::make_shared<LogBuffer>();
  std::optional<base::log::Copy> log_copy_;  // into log_lines_; unset without a folder
  VolumeThread log_thread_;
  base::SteadyTime next_log_flush_ ABSL_GUARDED_BY(mutex_){};
  std::jthread timer_;
};

}  // namespace medley::worker

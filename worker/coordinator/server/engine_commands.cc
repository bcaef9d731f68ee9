// Engine: carrying out the commands of the core.
#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/coordinator/server/engine.h"
#include "worker/coordinator/server/folder.h"

namespace medley::worker {

using base::MutexLock;

namespace {

constexpr base::nanoseconds kJournalRetry = base::seconds(1);
constexpr size_t kMostHeld = 100'000;
// How long an object store may fail while training goes on. After that nobody can tell who leads, and a restart may
// help.
constexpr base::nanoseconds kLongestOutage = base::seconds(3600);

}  // namespace

void Engine::Carry() {
  trains_ = !core_->over() && core_->any_member_stays();
  for (std::vector<Command> commands = core_->TakeCommands(); !commands.empty(); commands = core_->TakeCommands()) {
    std::ranges::move(commands, std::back_inserter(held_));
    CarryHeld();
    if (journal_full_ || ends_early() || stop_.stop_requested()) return;
    changed_.NotifyAll();
  }
}

// No later command may be carried out while a record of the journal is not written.
void Engine::CarryHeld() {
  while (!held_.empty()) {
    if (stop_.stop_requested() || ends_early()) return held_.clear();
    if (journal_full_ && (core_->over() || core_->handed_over() || held_.size() > kMostHeld)) {
      return GiveUp(1, journal_full_->why);  // nobody may believe an end that is not in the journal
    }
    if (journal_full_) return;
    Command command = std::move(held_.front());
    held_.pop_front();
    Carry(command);
  }
}

void Engine::RetryJournal() {
  if (clock_.Steady() < journal_retry_) return;
  const JournalFull before = *std::exchange(journal_full_, std::nullopt);
  Append(before.state);
  if (journal_full_) journal_full_->since = before.since;
  if (journal_full_ || ends_early()) return;
  paused_before_ = false;
  base::log::Info("the journal can be written again: training continues");
  core_->OnVolumeReturned(Now());
  CarryHeld();
}

void Engine::Carry(Command& command) {
  if (auto* send = std::get_if<SendCommand>(&command)) {
    const auto link = links_.find(send->member);
    if (link == links_.end() || link->second.instance != send->instance || !link->second.session) return;
    if (!link->second.session->Push(std::move(send->message))) link->second.session->Cancel();
  } else if (auto* journal = std::get_if<JournalCommand>(&command)) {
    if (journal->periodic && options_.checkpoint_root.of_objects()) return AppendLater(std::move(journal->state));
    Append(std::move(journal->state));
  } else if (auto* step = std::get_if<StepCommand>(&command)) {
    WriteStep([order = *step, now = clock_.Now()](Folder& folder) -> absl::Status {
      MEDLEY_RETURN_IF_ERROR(folder.steps->Add(order));
      return folder.board ? folder.board->Add(order, now) : absl::OkStatus();
    });
  } else if (auto* drain = std::get_if<DrainCommand>(&command)) {
    WriteStep([order = *drain](Folder& folder) { return folder.steps->Add(order); });
  } else if (auto* evaluation = std::get_if<EvaluationCommand>(&command)) {
    WriteStep([order = *evaluation, now = clock_.Now()](Folder& folder) -> absl::Status {
      MEDLEY_RETURN_IF_ERROR(folder.evaluations->Add(order));
      return folder.board ? folder.board->Add(order, now) : absl::OkStatus();
    });
  } else if (auto* rollback = std::get_if<RollbackCommand>(&command)) {
    WriteStep([order = *rollback, now = clock_.Now()](Folder& folder) -> absl::Status {
      MEDLEY_RETURN_IF_ERROR(folder.steps->Rollback(order));
      MEDLEY_RETURN_IF_ERROR(folder.evaluations->Rollback(order));
      return folder.board ? folder.board->Rollback(order, now) : absl::OkStatus();
    });
  } else if (auto* find = std::get_if<FindCheckpointCommand>(&command)) {
    LookForCheckpoint(*find);
  } else if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) {
    CompleteManifest(std::move(*manifest));
  } else if (auto* prune = std::get_if<PruneCommand>(&command)) {
    Prune(std::move(*prune));
  } else if (auto* discard = std::get_if<DiscardCheckpointCommand>(&command)) {
    Discard(std::move(*discard));
  } else if (auto* order = std::get_if<ExportCommand>(&command)) {
    WriteModel(std::move(*order));
  } else if (auto* drop = std::get_if<DropCommand>(&command)) {
    const auto link = links_.find(drop->member);
    if (link == links_.end() || link->second.instance != drop->instance) return;
    if (link->second.session) link->second.session->Cancel();
    links_.erase(link);
  } else if (auto* fence = std::get_if<FenceCommand>(&command)) {
    rendezvous_.Fence(fence->oldest);
  } else if (auto* line = std::get_if<LogCommand>(&command)) {
    base::log::Write(line->warning ? base::log::Level::kWarn : base::log::Level::kInfo, line->message, {});
  } else if (auto* finish = std::get_if<FinishCommand>(&command)) {
    Finish(finish->exit_code);
  } else if (std::holds_alternative<HandedOverCommand>(command)) {
    Finish(kSuperseded);
  }
}

void Engine::Finish(int exit_code) {
  if (!exit_code_ || *exit_code_ == 0) exit_code_ = exit_code;
  changed_.NotifyAll();
}

void Engine::GiveUp(int exit_code, const absl::Status& why) {
  if (ends_early_) return;
  base::log::Error("the coordinator cannot continue and exits", {{"error", base::Message(why)}});
  ends_early_ = true;
  exit_code_ = exit_code;
  changed_.NotifyAll();
}

void Engine::CheckClaim(const absl::StatusOr<Claim>& newest) {
  if (newest.ok()) {
    claims_unread_since_.reset();
  } else {
    // This look only shortens the time that a former coordinator runs. What it may do is decided by the look after each
    // record of the journal.
    const absl::Status why = base::Annotate(newest.status(), "looking for a newer coordinator");
    if (!claims_unread_since_) base::log::Warn(base::Message(why));
    const base::SteadyTime since = claims_unread_since_.value_or(clock_.Steady());
    claims_unread_since_ = since;
    // A store that does not answer has no newer claim either.
    const base::nanoseconds limit = options_.checkpoint_root.of_objects() ? kLongestOutage : options_.journal_timeout;
    if (clock_.Steady() - since >= limit) GiveUp(1, why);
    return;
  }
  if (newest->IsNewerThan(claim_)) GiveUp(kSuperseded, Superseded(claim_, *newest));
}

void Engine::LookAtClaims() {
  // A look that cannot be posted waits for an earlier one, which the volume holds. The journal's deadline bounds that.
  (void)claim_thread_.Post([this, claims = *claims_, own = claim_]() -> VolumeThread::Deliver {
    absl::StatusOr<Claim> newest = claims.Renew(own);
    return [this, newest = std::move(newest)] {
      MutexLock lock(mutex_);
      CheckClaim(newest);
    };
  });
}

void Engine::Append(job::v1::CoordinatorState state) {
  if (!folder_) return;
  const bool objects = options_.checkpoint_root.of_objects();
  const auto append = [folder = folder_, claims = claims_, own = claim_, state, now = clock_.Now(),
                       objects]() -> absl::Status {
    const bool last = state.has_handed_over() || state.outcome() != job::v1::JOB_PHASE_UNSPECIFIED;
    if (last && folder->board) (void)folder->board->Flush(now);  // the job does not depend on it
    if (last && objects) SyncRecords(*folder);
    if (state.has_handed_over()) {  // the next one opens the files now
      MEDLEY_RETURN_IF_ERROR(folder->steps->Sync());
      MEDLEY_RETURN_IF_ERROR(folder->evaluations->Sync());
    }
    MEDLEY_RETURN_IF_ERROR(folder->journal->Append(state));
    // Before anything that depends on the record: a newer coordinator may have read the journal without it.
    return claims ? claims->Check(own) : absl::OkStatus();
  };
  const absl::Status status =
      journal_thread_.Run("writing the journal", options_.journal_timeout, stop_.get_token(), append);
  if (status.ok()) journal_late_.reset();
  if (status.ok() || stop_.stop_requested()) return;
  // A full volume, or a store that does not answer, or refuses for some time: the members keep the state, so it is
  // better to wait than to end.
  const bool passes = objects ? !absl::IsAborted(status) : absl::IsResourceExhausted(status);
  if (passes && !core_->over() && !core_->handed_over()) {
    if (!paused_before_) {
      base::log::Error("training pauses, because the journal cannot be written", {{"error", base::Message(status)}});
    }
    paused_before_ = true;
    journal_full_ = JournalFull{std::move(state), status, clock_.Now()};
    journal_retry_ = clock_.Steady() + kJournalRetry;
    return;
  }
  GiveUp(absl::IsAborted(status) ? kSuperseded : 1, status);
}

// The lines that wait, with the record that tells of them. Best effort.
void Engine::SyncRecords(Folder& folder) {
  absl::Status status = folder.steps->Sync();
  if (status.ok()) status = folder.evaluations->Sync();
  if (status.ok() && folder.board) status = folder.board->Sync();
  if (status.ok()) folder.records_failed = false;
  if (!status.ok() && !folder.records_failed.exchange(true)) base::log::Error(base::Message(status));
}

// While a store is slow or fails, training goes on: nothing depends on the record.
void Engine::AppendLater(job::v1::CoordinatorState state) {
  if (!folder_ || record_ != nullptr) return;
  const auto record = std::make_shared<PeriodicRecord>();
  const auto append = [record, folder = folder_, claims = claims_, own = claim_,
                       state = std::move(state)]() -> VolumeThread::Deliver {
    absl::Status status = folder->journal->Append(state);
    if (status.ok()) SyncRecords(*folder);
    if (status.ok() && claims) status = claims->Check(own);
    MutexLock lock(record->mutex);
    record->result = status;
    return {};
  };
  if (journal_thread_.Post(append)) record_ = record;
}

void Engine::LookAtRecord() {
  if (record_ == nullptr) return;
  std::optional<absl::Status> result;
  {
    MutexLock lock(record_->mutex);
    result = record_->result;
  }
  if (!result) return;
  record_.reset();
  OnRecord(*result);
}

void Engine::OnRecord(const absl::Status& status) {
  if (absl::IsAborted(status)) return GiveUp(kSuperseded, status);
  if (status.ok()) {
    if (journal_late_) base::log::Info("the journal can be written again");
    return journal_late_.reset();
  }
  const base::WallTime now = clock_.Now();
  if (!journal_late_) {
    base::log::Warn("the journal cannot be written; training goes on", {{"error", base::Message(status)}});
  }
  journal_late_ = JournalLate{status, journal_late_ ? journal_late_->since : now};
  if (now - journal_late_->since >= kLongestOutage) GiveUp(1, status);
}

void Engine::WriteStep(std::function<absl::Status(Folder&)> write) {
  if (!folder_) return;
  const bool posted = journal_thread_.Post([folder = folder_, write = std::move(write)]() -> VolumeThread::Deliver {
    const absl::Status status = write(*folder);  // logged once: a full volume fails every step
    if (status.ok()) folder->records_failed = false;
    if (!status.ok() && !folder->records_failed.exchange(true)) base::log::Error(base::Message(status));
    return {};
  });
  if (!posted && !stop_.stop_requested()) {
    GiveUp(1, base::Unavailable("steps.jsonl: too many lines wait for the volume, which does not answer"));
  }
}

void Engine::WriteLog(Folder& folder, LogBuffer& lines) {
  if (folder.logs == nullptr) return;
  const absl::Status written = folder.logs->Drain(lines);
  // Logged once, because that is a line to write again.
  if (written.ok()) folder.log_failed = false;
  if (!written.ok() && !folder.log_failed.exchange(true)) {
    base::log::Warn("the log in the job's folder lacks lines", {{"error", base::Message(written)}});
  }
}

void Engine::FlushLog() {
  if (!folder_ || folder_->logs == nullptr || log_lines_->empty()) return;
  // Lines that cannot be posted wait in the buffer, which is bounded.
  (void)log_thread_.Post([folder = folder_, lines = log_lines_]() -> VolumeThread::Deliver {
    WriteLog(*folder, *lines);
    return {};
  });
}

void Engine::LookForCheckpoint(const FindCheckpointCommand& command) {
  const bool posted = checkpoint_thread_.Post([this, folder = folder_, command]() -> VolumeThread::Deliver {
    absl::StatusOr<CheckpointSearch> found = folder->checkpoints->Search(command);
    return [this, found = std::move(found)] {
      MutexLock lock(mutex_);
      core_->OnCheckpointFound(found, Now());
      Carry();
    };
  });
  if (!posted) base::log::Warn("cannot search for a checkpoint: too many operations wait for the volume");
}

void Engine::CompleteManifest(WriteManifestCommand command) {
  const bool posted =
      checkpoint_thread_.Post([this, folder = folder_, order = std::move(command)]() -> VolumeThread::Deliver {
        const absl::Status status = folder->checkpoints->Publish(order);
        return [this, name = order.folder, status] {
          MutexLock lock(mutex_);
          if (absl::IsAborted(status)) return GiveUp(kSuperseded, status);
          core_->OnManifestWritten(name, status, Now());
          Carry();
        };
      });
  if (!posted) base::log::Warn("cannot complete a checkpoint: too many operations wait for the volume");
}

void Engine::Prune(PruneCommand command) {
  if (!folder_) return;
  // Best effort: what stays is removed after the next checkpoint.
  (void)checkpoint_thread_.Post([folder = folder_, order = std::move(command)]() -> VolumeThread::Deliver {
    if (const absl::Status status = folder->checkpoints->Prune(order.best); !status.ok()) {
      base::log::Warn("removing old checkpoints failed", {{"error", base::Message(status)}});
    }
    return {};
  });
}

void Engine::Discard(DiscardCheckpointCommand command) {
  if (!folder_) return;
  // Best effort: what stays is removed after the next checkpoint.
  (void)checkpoint_thread_.Post([folder = folder_, order = std::move(command)]() -> VolumeThread::Deliver {
    if (const absl::Status status = folder->checkpoints->Discard(order); !status.ok()) {
      base::log::Warn("the files of a checkpoint that was given up stay", {{"error", base::Message(status)}});
    }
    return {};
  });
}

void Engine::WriteModel(ExportCommand command) {
  const bool posted =
      checkpoint_thread_.Post([this, folder = folder_, write = options_.export_model, order = std::move(command),
                               lines = log_lines_]() -> VolumeThread::Deliver {
        WriteLog(*folder, *lines);  // a part of the model
        const absl::Status status = folder->checkpoints->Export(write, order);
        return [this, step = order.step, status] {
          MutexLock lock(mutex_);
          if (absl::IsAborted(status)) return GiveUp(kSuperseded, status);
          core_->OnExported(step, status, Now());
          Carry();
        };
      });
  if (!posted) base::log::Warn("cannot write the model: too many operations wait for the volume");
}

}  // namespace medley::worker

// Engine: carrying out the commands of the core.
#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"
#include "worker/coordinator/server/engine.h"

namespace medley::worker {

using base::MutexLock;

void Engine::Carry() {
  for (std::vector<Command> commands = core_->TakeCommands(); !commands.empty(); commands = core_->TakeCommands()) {
    for (Command& command : commands) {
      // No later command may be carried out when a journal record could not be written.
      if (ends_early()) return;
      Carry(command);
    }
    changed_.NotifyAll();
  }
}

void Engine::Carry(Command& command) {
  if (auto* send = std::get_if<SendCommand>(&command)) {
    const auto link = links_.find(send->member);
    if (link == links_.end() || link->second.instance != send->instance || !link->second.session) return;
    if (!link->second.session->Push(std::move(send->message))) link->second.session->Cancel();
  } else if (auto* journal = std::get_if<JournalCommand>(&command)) {
    if (!journal_) return;
    if (const absl::Status status = journal_->Append(journal->state); !status.ok()) Finish(1, status);
    // Before anything that depends on the record: a newer coordinator may have read the journal without it.
    if (claims_) CheckClaim(claims_->Newest());
  } else if (auto* step = std::get_if<StepCommand>(&command)) {
    if (!steps_) return;
    if (const absl::Status status = steps_->Add(*step); !status.ok()) log::Error(base::Message(status));
  } else if (auto* rollback = std::get_if<RollbackCommand>(&command)) {
    if (!steps_) return;
    if (const absl::Status status = steps_->Rollback(*rollback); !status.ok()) log::Error(base::Message(status));
  } else if (std::holds_alternative<FindCheckpointCommand>(command)) {
    Later([this] { LookForCheckpoint(); });
  } else if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) {
    Later([this, order = std::move(*manifest)] { CompleteManifest(order); });
  } else if (auto* drop = std::get_if<DropCommand>(&command)) {
    const auto link = links_.find(drop->member);
    if (link == links_.end() || link->second.instance != drop->instance) return;
    if (link->second.session) link->second.session->Cancel();
    links_.erase(link);
  } else if (auto* fence = std::get_if<FenceCommand>(&command)) {
    rendezvous_.Fence(fence->oldest);
  } else if (auto* line = std::get_if<LogCommand>(&command)) {
    log::Write(line->warning ? log::Level::kWarn : log::Level::kInfo, line->message, {});
  } else if (auto* finish = std::get_if<FinishCommand>(&command)) {
    Finish(finish->exit_code, absl::OkStatus());
  } else if (std::holds_alternative<HandedOverCommand>(command)) {
    Finish(kSuperseded, absl::OkStatus());
  }
}

void Engine::Finish(int exit_code, const absl::Status& why) {
  if (!why.ok()) log::Error("the coordinator cannot continue and exits", {{"error", base::Message(why)}});
  if (!exit_code_ || *exit_code_ == 0) exit_code_ = exit_code;
  changed_.NotifyAll();
}

void Engine::CheckClaim(const absl::StatusOr<Claim>& newest) {
  if (!newest.ok()) return Finish(1, base::Annotate(newest.status(), "looking for a newer coordinator"));
  if (newest->term > options_.term) Finish(kSuperseded, Superseded(options_.term, *newest));
}

// False: a newer coordinator leads, or the claims cannot be read.
bool Engine::StillLeads() {
  if (!claims_) return true;
  const absl::StatusOr<Claim> newest = claims_->Newest();
  MutexLock lock(mutex_);
  CheckClaim(newest);
  return !ends_early();
}

void Engine::LookForCheckpoint() {
  std::optional<CheckpointPosition> position;
  absl::StatusOr<FoundCheckpoint> found =
      FindCheckpoint(options_.checkpoint_root, options_.core.job_uid, options_.model_fingerprint);
  if (!found.ok())
    log::Error("searching for a checkpoint failed, the job starts from the seed",
               {{"error", base::Message(found.status())}});
  if (found.ok()) {
    for (const RejectedCheckpoint& rejected : found->rejected) {
      log::Warn("skipped a checkpoint", {{"reason", rejected.reason}});
    }
    if (const auto& manifest = found->manifest) {
      position = CheckpointPosition{manifest->folder, manifest->step, {}};
      position->ledger.set_rows(manifest->rows);
      position->ledger.set_epochs(manifest->data_epochs);
      position->ledger.set_batch_size(manifest->batch_size);
      position->ledger.set_committed_step(manifest->step);
    }
  }
  MutexLock lock(mutex_);
  core_->OnCheckpointFound(position, Now());
  Carry();
}

void Engine::CompleteManifest(const WriteManifestCommand& command) {
  if (!StillLeads()) return;  // the files of the checkpoint do not count
  CheckpointManifest manifest;
  manifest.job_uid = options_.core.job_uid;
  manifest.model_fingerprint = options_.model_fingerprint;
  manifest.generation = command.generation;
  manifest.step = command.step;
  manifest.rows = command.ledger.rows();
  manifest.data_epochs = command.ledger.epochs();
  manifest.batch_size = command.ledger.batch_size();
  manifest.folder = command.folder;
  for (const job::v1::CheckpointFile& file : command.files) {
    manifest.files.push_back({file.name(), file.bytes(), file.crc32()});
  }
  const absl::Status status = CompleteCheckpoint(options_.checkpoint_root, manifest);
  if (status.ok()) {
    const absl::Status pruned = PruneCheckpoints(options_.checkpoint_root, options_.keep_checkpoints);
    if (!pruned.ok()) log::Warn("removing old checkpoints failed", {{"error", base::Message(pruned)}});
  }
  MutexLock lock(mutex_);
  core_->OnManifestWritten(command.step, status, Now());
  Carry();
}

}  // namespace medley::worker

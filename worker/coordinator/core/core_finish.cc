// CoordinatorCore: checkpoints, the finished model, the end.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr int kMaxRewrites = 3;  // of the last checkpoint, when it was damaged

}  // namespace

void CoordinatorCore::StartCheckpoint(int64_t step, Instant now) {
  const bool again = last_attempt_.generation == active_->generation && last_attempt_.step == step;
  last_attempt_ = {active_->generation, step, again ? last_attempt_.number + 1 : 0};
  PendingCheckpoint& pending = checkpoint_.emplace();
  pending.step = step;
  pending.folder = fmt::format("step-{:08}-e{}", step, active_->generation);
  if (again) pending.folder += fmt::format("-{}", last_attempt_.number);
  pending.deadline = now.steady + options_.checkpoint_timeout;
  checkpoint_at_ = now.steady;
  checkpoint_wanted_ = false;
  job::v1::SessionResponse message;
  message.mutable_checkpoint()->set_generation(active_->generation);
  message.mutable_checkpoint()->set_step(step);
  message.mutable_checkpoint()->set_folder(pending.folder);
  for (const auto& [name, member] : active_->members) {
    pending.waiting.insert(name);
    Send(member.peer, message);
  }
}

void CoordinatorCore::OnCheckpointed(const std::string& member, const job::v1::Checkpointed& done, Instant /*now*/) {
  if (!checkpoint_ || done.step() != checkpoint_->step || checkpoint_->waiting.erase(member) == 0) return;
  checkpoint_->files.insert(checkpoint_->files.end(), done.files().begin(), done.files().end());
}

// Completes the checkpoint once every member has written its file and the step is committed.
void CoordinatorCore::AdvanceCheckpoint(Instant now) {
  if (!checkpoint_ || writing_manifest_ || !checkpoint_->waiting.empty() || checkpoint_->step > ledger_->committed())
    return;
  std::set<std::string> names;
  for (const job::v1::CheckpointFile& file : checkpoint_->files) {
    if (names.insert(file.name()).second) continue;
    Fail(fmt::format("two members wrote the same file {} of checkpoint {}", file.name(), checkpoint_->folder), false,
         now);
    return;
  }
  Ledger at = *ledger_;
  const absl::Status reset = at.ResetTo(checkpoint_->step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  commands_.push_back(WriteManifestCommand{checkpoint_->folder, active_->generation, checkpoint_->step, at.ToRecord(),
                                           std::move(checkpoint_->files), best_ ? best_->folder() : ""});
  writing_manifest_ = PendingManifest{checkpoint_->folder, checkpoint_->step, now.steady + options_.volume_timeout};
  checkpoint_.reset();
}

void CoordinatorCore::OnManifestWritten(const std::string& folder, const absl::Status& status, Instant now) {
  Hold(now);
  if (over() || handed_over_) return;
  if (!writing_manifest_ || writing_manifest_->folder != folder) return;  // it came after the deadline
  const int64_t step = writing_manifest_->step;
  writing_manifest_.reset();
  if (status.ok()) {
    last_checkpoint_ = step;
    last_folder_ = folder;
    last_is_damaged_ = false;
    Saved();
    Journal(now);
  } else {
    CheckpointFailed(fmt::format("completing the checkpoint of step {}: {}", step, std::string(status.message())),
                     folder, now);
  }
  if (!over()) Advance(now);
}

// Training goes on, and the next checkpoint is written at the usual time.
void CoordinatorCore::OnCheckpointFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  const std::string why = fmt::format("{} could not write its part of the checkpoint of step {}: {}", member,
                                      fault.step(), fault.message());
  const bool pending = active_ && fault.generation() == active_->generation && checkpoint_ &&
                       checkpoint_->step == fault.step() && checkpoint_->waiting.contains(member);
  if (!pending) return Log(true, why);
  const std::string folder = checkpoint_->folder;
  checkpoint_.reset();
  CheckpointFailed(why, folder, now);
}

// The job trains on, whatever is wrong with the volume. Only the end of the job must be saved.
void CoordinatorCore::CheckpointFailed(const std::string& why, const std::string& folder, Instant now) {
  Log(true, why);
  ++checkpoint_failures_;
  if (!checkpoint_failure_) {
    const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.wall.time_since_epoch()).count();
    checkpoint_failure_.emplace().mutable_since()->set_seconds(nanos / 1'000'000'000);
  }
  checkpoint_failure_->set_message(why);
  if (!folder.empty()) commands_.push_back(DiscardCheckpointCommand{folder});
  if (mode_ == Mode::kTraining) BestNotSaved(now);
  if (mode_ != Mode::kTraining || (!suspending_ && !AllCommitted())) return;  // the next one is due as usual
  retry_at_ = now.steady + std::min<base::nanoseconds>(
                               options_.retry_wait * (int64_t{1} << std::min(final_failures_, 5)), base::seconds(30));
  if (final_failures_++ == 0) final_since_ = now.steady;
  if (suspending_) return;  // until the deadline of the suspension
  if (final_failures_ > options_.max_fruitless && now.steady - final_since_ >= options_.final_save_wait) {
    Fail(why, true, now);
  }
}

void CoordinatorCore::Saved() {
  if (checkpoint_failure_) Log(false, "the checkpoint volume can be written again");
  checkpoint_failure_.reset();
  final_failures_ = 0;
}

void CoordinatorCore::OnVolumeReturned(Instant now) { committed_at_ = now.steady; }

void CoordinatorCore::AdvanceEnding(Instant now) {
  if (over() || mode_ != Mode::kTraining || next_ || successor_) return;
  const int64_t committed = ledger_->committed();
  const bool saved = !options_.checkpoints || (last_checkpoint_ == committed && !last_is_damaged_);
  const bool all = AllCommitted();
  if (committed != ledger_->leased() || (!suspending_ && !all)) return;
  if (checkpoint_ || writing_manifest_) return;
  if (!saved && committed > 0 && active_->restored_step == 0) {
    if (now.steady >= retry_at_) StartCheckpoint(committed, now);
    return;
  }
  if (suspending_ && !all) return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, message_, now);
  if (!AdvanceLastEvaluations(now) || over()) return;
  if (options_.exports && !written_) return AdvanceExport(now);
  EndEvaluation(now);
  Finish(job::v1::JOB_PHASE_COMPLETE, 0, curve_.StopsAt(committed).value_or("all samples are trained"), now);
}

void CoordinatorCore::AdvanceExport(Instant now) {
  if (export_ || now.steady < retry_at_) return;
  if (!transform_) {
    return Fail("no trainer has reported the transform of the training data, without which the model cannot be used",
                true, now);
  }
  const int64_t step = ExportedStep();
  export_ = PendingExport{step, now.steady + options_.volume_timeout};
  commands_.push_back(ExportCommand{step, best_ ? best_->folder() : "", *transform_, Observe(now), active_->plan});
}

void CoordinatorCore::OnExported(int64_t step, const absl::Status& status, Instant now) {
  Hold(now);
  if (over() || handed_over_ || !export_ || step != export_->step) return;  // it came after the deadline
  export_.reset();
  if (status.ok()) {
    written_ = evaluation_.has_value();  // otherwise the generation was halted meanwhile, and ends again
    Saved();
  } else if (absl::IsDataLoss(status) && best_ && best_->model().step() == step) {
    DropBest(std::string(status.message()));
  } else {
    // The members still hold the state of a checkpoint that was damaged since it was completed.
    last_is_damaged_ =
        absl::IsDataLoss(status) && mode_ == Mode::kTraining && StateStep() == step && rewrites_++ < kMaxRewrites;
    CheckpointFailed(std::string(status.message()), "", now);
  }
  if (!over()) Advance(now);
}

void CoordinatorCore::Fail(const std::string& why, bool retryable, Instant now) {
  if (over()) return;
  retryable_ = retryable;
  Finish(job::v1::JOB_PHASE_FAILED, retryable ? 1 : 2, why, now);
}

void CoordinatorCore::Finish(job::v1::JobPhase outcome, int exit_code, const std::string& why, Instant now) {
  outcome_ = outcome;
  message_ = why;
  final_generation_ = active_generation();
  final_plan_ = active_ ? active_->request.plan().generation() : 0;
  Log(exit_code != 0, fmt::format("{}: {}", job::v1::JobPhase_Name(outcome), why));
  active_.reset();
  next_.reset();
  checkpoint_.reset();
  evaluation_.reset();
  mode_ = Mode::kIdle;
  Journal(now);
  job::v1::SessionResponse message;
  message.mutable_release()->set_exit_code(exit_code == 0 ? 0 : 1);
  message.mutable_release()->set_reason(why);
  for (auto& [name, member] : members_) {
    member.released = true;
    commands_.push_back(SendCommand{name, member.hello.instance(), message});
  }
  commands_.push_back(FinishCommand{exit_code});
}

}  // namespace medley::worker

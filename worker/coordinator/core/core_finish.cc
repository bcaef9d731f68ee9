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
  const bool again = state_.checkpoints.last_attempt.generation == state_.generations.active->generation &&
                     state_.checkpoints.last_attempt.step == step;
  state_.checkpoints.last_attempt = {state_.generations.active->generation, step,
                                     again ? state_.checkpoints.last_attempt.number + 1 : 0};
  PendingCheckpoint& pending = state_.checkpoints.pending.emplace();
  pending.step = step;
  pending.folder = fmt::format("step-{:08}-e{}", step, state_.generations.active->generation);
  if (again) pending.folder += fmt::format("-{}", state_.checkpoints.last_attempt.number);
  pending.deadline = now.steady + state_.options.checkpoint_timeout;
  state_.checkpoints.started_at = now.steady;
  state_.checkpoints.wanted = false;
  job::v1::SessionResponse message;
  message.mutable_checkpoint()->set_generation(state_.generations.active->generation);
  message.mutable_checkpoint()->set_step(step);
  message.mutable_checkpoint()->set_folder(pending.folder);
  for (const auto& [name, member] : state_.generations.active->members) {
    pending.waiting.insert(name);
    Send(member.peer, message);
  }
}

void CoordinatorCore::OnCheckpointed(const std::string& member, const job::v1::Checkpointed& done, Instant /*now*/) {
  if (!state_.checkpoints.pending || done.step() != state_.checkpoints.pending->step ||
      state_.checkpoints.pending->waiting.erase(member) == 0)
    return;
  state_.checkpoints.pending->files.insert(state_.checkpoints.pending->files.end(), done.files().begin(),
                                           done.files().end());
}

// Completes the checkpoint once every member has written its file and the step is committed.
void CoordinatorCore::AdvanceCheckpoint(Instant now) {
  if (!state_.checkpoints.pending || state_.checkpoints.writing || !state_.checkpoints.pending->waiting.empty() ||
      state_.checkpoints.pending->step > state_.training.ledger->committed())
    return;
  std::set<std::string> names;
  for (const job::v1::CheckpointFile& file : state_.checkpoints.pending->files) {
    if (names.insert(file.name()).second) continue;
    Fail(fmt::format("two members wrote the same file {} of checkpoint {}", file.name(),
                     state_.checkpoints.pending->folder),
         false, now);
    return;
  }
  Ledger at = *state_.training.ledger;
  const absl::Status reset = at.ResetTo(state_.checkpoints.pending->step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  commands_.push_back(WriteManifestCommand{
      state_.checkpoints.pending->folder, state_.generations.active->generation, state_.checkpoints.pending->step,
      at.ToRecord(), std::move(state_.checkpoints.pending->files), state_.best.kept ? state_.best.kept->folder() : ""});
  state_.checkpoints.writing = PendingManifest{state_.checkpoints.pending->folder, state_.checkpoints.pending->step,
                                               now.steady + state_.options.volume_timeout};
  state_.checkpoints.pending.reset();
}

void CoordinatorCore::OnManifestWritten(const std::string& folder, const absl::Status& status, Instant now) {
  Hold(now);
  if (over() || state_.hand_over.handed_over) return;
  if (!state_.checkpoints.writing || state_.checkpoints.writing->folder != folder)
    return;  // it came after the deadline
  const int64_t step = state_.checkpoints.writing->step;
  state_.checkpoints.writing.reset();
  if (status.ok()) {
    state_.checkpoints.last_step = step;
    state_.checkpoints.last_folder = folder;
    state_.checkpoints.last_is_damaged = false;
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
  const bool pending = state_.generations.active && fault.generation() == state_.generations.active->generation &&
                       state_.checkpoints.pending && state_.checkpoints.pending->step == fault.step() &&
                       state_.checkpoints.pending->waiting.contains(member);
  if (!pending) return Log(true, why);
  const std::string folder = state_.checkpoints.pending->folder;
  state_.checkpoints.pending.reset();
  CheckpointFailed(why, folder, now);
}

// The job trains on, whatever is wrong with the volume. Only the end of the job must be saved.
void CoordinatorCore::CheckpointFailed(const std::string& why, const std::string& folder, Instant now) {
  Log(true, why);
  ++state_.checkpoints.failures;
  if (!state_.checkpoints.failure) {
    const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.wall.time_since_epoch()).count();
    state_.checkpoints.failure.emplace().mutable_since()->set_seconds(nanos / 1'000'000'000);
  }
  state_.checkpoints.failure->set_message(why);
  if (!folder.empty()) commands_.push_back(DiscardCheckpointCommand{folder});
  if (state_.generations.mode == Mode::kTraining) BestNotSaved(now);
  if (state_.generations.mode != Mode::kTraining || (!state_.ending.suspending && !AllCommitted()))
    return;  // the next one is due as usual
  state_.recovery.retry_at =
      now.steady + std::min<base::nanoseconds>(
                       state_.options.retry_wait * (int64_t{1} << std::min(state_.checkpoints.final_failures, 5)),
                       base::seconds(30));
  if (state_.checkpoints.final_failures++ == 0) state_.checkpoints.final_since = now.steady;
  if (state_.ending.suspending) return;  // until the deadline of the suspension
  if (state_.checkpoints.final_failures > state_.options.max_fruitless &&
      now.steady - state_.checkpoints.final_since >= state_.options.final_save_wait) {
    Fail(why, true, now);
  }
}

void CoordinatorCore::Saved() {
  if (state_.checkpoints.failure) Log(false, "the checkpoint volume can be written again");
  state_.checkpoints.failure.reset();
  state_.checkpoints.final_failures = 0;
}

void CoordinatorCore::OnVolumeReturned(Instant now) { state_.training.committed_at = now.steady; }

void CoordinatorCore::AdvanceEnding(Instant now) {
  if (over() || state_.generations.mode != Mode::kTraining || state_.generations.next || state_.hand_over.successor)
    return;
  const int64_t committed = state_.training.ledger->committed();
  const bool saved =
      !state_.options.checkpoints || (state_.checkpoints.last_step == committed && !state_.checkpoints.last_is_damaged);
  const bool all = AllCommitted();
  if (committed != state_.training.ledger->leased() || (!state_.ending.suspending && !all)) return;
  if (state_.checkpoints.pending || state_.checkpoints.writing) return;
  if (!saved && committed > 0 && state_.generations.active->restored_step == 0) {
    if (now.steady >= state_.recovery.retry_at) StartCheckpoint(committed, now);
    return;
  }
  if (state_.ending.suspending && !all) return Finish(job::v1::JOB_PHASE_SUSPENDED, 0, state_.ending.message, now);
  if (!AdvanceLastEvaluations(now) || over()) return;
  if (state_.options.exports && !state_.ending.written) return AdvanceExport(now);
  EndEvaluation(now);
  Finish(job::v1::JOB_PHASE_COMPLETE, 0, state_.evaluation.curve.StopsAt(committed).value_or("all samples are trained"),
         now);
}

void CoordinatorCore::AdvanceExport(Instant now) {
  if (state_.ending.exporting || now.steady < state_.recovery.retry_at) return;
  if (!state_.evaluation.transform) {
    return Fail("no trainer has reported the transform of the training data, without which the model cannot be used",
                true, now);
  }
  const int64_t step = ExportedStep();
  state_.ending.exporting = PendingExport{step, now.steady + state_.options.volume_timeout};
  commands_.push_back(ExportCommand{step, state_.best.kept ? state_.best.kept->folder() : "",
                                    *state_.evaluation.transform, Observe(now), state_.generations.active->plan});
}

void CoordinatorCore::OnExported(int64_t step, const absl::Status& status, Instant now) {
  Hold(now);
  if (over() || state_.hand_over.handed_over || !state_.ending.exporting || step != state_.ending.exporting->step)
    return;  // it came after the deadline
  state_.ending.exporting.reset();
  if (status.ok()) {
    state_.ending.written =
        state_.evaluation.pending.has_value();  // otherwise the generation was halted meanwhile, and ends again
    Saved();
  } else if (absl::IsDataLoss(status) && state_.best.kept && state_.best.kept->model().step() == step) {
    DropBest(std::string(status.message()));
  } else {
    // The members still hold the state of a checkpoint that was damaged since it was completed.
    state_.checkpoints.last_is_damaged = absl::IsDataLoss(status) && state_.generations.mode == Mode::kTraining &&
                                         StateStep() == step && state_.checkpoints.rewrites++ < kMaxRewrites;
    CheckpointFailed(std::string(status.message()), "", now);
  }
  if (!over()) Advance(now);
}

void CoordinatorCore::Fail(const std::string& why, bool retryable, Instant now) {
  if (over()) return;
  state_.ending.retryable = retryable;
  Finish(job::v1::JOB_PHASE_FAILED, retryable ? 1 : 2, why, now);
}

void CoordinatorCore::Finish(job::v1::JobPhase outcome, int exit_code, const std::string& why, Instant now) {
  state_.ending.outcome = outcome;
  state_.ending.message = why;
  state_.ending.final_generation = active_generation();
  state_.ending.final_plan = state_.generations.active ? state_.generations.active->request.plan().generation() : 0;
  Log(exit_code != 0, fmt::format("{}: {}", job::v1::JobPhase_Name(outcome), why));
  state_.generations.active.reset();
  state_.generations.next.reset();
  state_.checkpoints.pending.reset();
  state_.evaluation.pending.reset();
  state_.generations.mode = Mode::kIdle;
  Journal(now);
  job::v1::SessionResponse message;
  message.mutable_release()->set_exit_code(exit_code == 0 ? 0 : 1);
  message.mutable_release()->set_reason(why);
  for (auto& [name, member] : state_.members.all) {
    member.released = true;
    commands_.push_back(SendCommand{name, member.hello.instance(), message});
  }
  commands_.push_back(FinishCommand{exit_code});
}

}  // namespace medley::worker

// CoordinatorCore: which checkpoint a job continues from, and what happens when none can be restored.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/core.h"

namespace medley::worker {
namespace {

constexpr int kRestoreAttempts = 3;      // of a checkpoint that may become readable
constexpr size_t kMaxUnrestorable = 64;  // folders
constexpr size_t kShownReasons = 4;      // of a message

std::string JoinReasons(std::span<const std::string> reasons) {
  const std::string shown = fmt::to_string(fmt::join(reasons.first(std::min(reasons.size(), kShownReasons)), "; "));
  if (reasons.size() <= kShownReasons) return shown;
  return fmt::format("{}; and {} more", shown, reasons.size() - kShownReasons);
}

}  // namespace

void CoordinatorCore::OnCheckpointFound(const absl::StatusOr<CheckpointSearch>& found, Instant now) {
  Hold(now);
  if (!state_.restoring.finding || over() || state_.hand_over.handed_over) return;
  state_.restoring.finding = false;
  if (!found.ok()) return RetrySearch(found.status(), now);
  state_.restoring.failed_searches = 0;
  if (!found->refused.empty()) return Fail(found->refused, false, now);
  if (found->newest) {
    if (const absl::Status fits = CheckPosition(*found->newest); !fits.ok()) {
      state_.restoring.unrestorable[found->newest->folder] = {std::string(fits.message()), true};
      return Advance(now);  // searches again
    }
  }
  std::vector<std::string> reasons = found->rejected;
  for (const CheckpointSearch::Incomplete& folder : found->incomplete) {
    if (folder.step <= state_.checkpoints.last_step) reasons.push_back(folder.reason);  // its manifest may be lost
  }
  if (!found->newest && (state_.checkpoints.last_step > 0 || !found->rejected.empty())) {
    const bool may_pass =
        found->unreadable ||
        std::ranges::any_of(state_.restoring.unrestorable, [](const auto& folder) { return !folder.second.damaged; });
    return FailWithoutCheckpoint(reasons, may_pass, now);
  }
  for (const std::string& reason : found->rejected) Log(true, "skipped a checkpoint: " + reason);
  const bool same =
      state_.restoring.position && found->newest && state_.restoring.position->folder == found->newest->folder;
  state_.restoring.found = true;
  state_.restoring.position = found->newest;
  if (!same) state_.restoring.why_older.clear();
  if (state_.restoring.position) {
    const int64_t newest = state_.checkpoints.last_step;
    if (!same && (!found->rejected.empty() || state_.restoring.position->step < newest)) {
      state_.restoring.why_older = fmt::format(
          "the job continues from the checkpoint of step {}, because a newer one cannot be restored: {}",
          state_.restoring.position->step,
          reasons.empty() ? fmt::format("that of step {} is no longer on the volume", newest) : JoinReasons(reasons));
    }
    AdoptCheckpoint(*state_.restoring.position);
  }
  if (!state_.restoring.position && state_.generations.from > 0) {
    Log(true, "no checkpoint has been completed yet: the job starts from the seed again");
  }
  Advance(now);
}

// Damage does not pass, so another attempt would end in the same way: the job fails at once.
void CoordinatorCore::FailWithoutCheckpoint(const std::vector<std::string>& reasons, bool may_pass, Instant now) {
  const std::string saved = state_.checkpoints.last_step > 0
                                ? fmt::format("step {} was saved", state_.checkpoints.last_step)
                                : "earlier steps were saved";
  Fail(
      fmt::format("no checkpoint can be restored, although {} ({}). To start anew, delete the job and create it again: "
                  "the new job has an empty folder on the volume. To continue from another checkpoint, name its folder "
                  "in spec.checkpoint.from of the new job",
                  saved, reasons.empty() ? "the volume has none" : JoinReasons(reasons)),
      may_pass, now);
}

// A file that another process wrote may be whole and yet not fit this job.
absl::Status CoordinatorCore::CheckPosition(const CheckpointPosition& position) const {
  const absl::StatusOr<Ledger> at = Ledger::FromRecord(position.ledger);
  if (!at.ok()) return base::Annotate(at.status(), "its manifest");
  if (!state_.training.ledger) return absl::OkStatus();
  const job::v1::LedgerRecord own = state_.training.ledger->ToRecord();
  if (own.rows() != position.ledger.rows() || own.batch_size() != position.ledger.batch_size()) {
    return base::DataLoss("it is of {} rows in batches of {}, this job trains {} in batches of {}",
                          position.ledger.rows(), position.ledger.batch_size(), own.rows(), own.batch_size());
  }
  if (position.step <= state_.training.ledger->total_steps()) return absl::OkStatus();
  return base::DataLoss("it is of step {}, this job has {} steps", position.step,
                        state_.training.ledger->total_steps());
}

// The journal may know a newer checkpoint that cannot be restored, or not know the newest one.
void CoordinatorCore::AdoptCheckpoint(const CheckpointPosition& newest) {
  if (newest.step < state_.checkpoints.last_step) {
    Log(true, fmt::format("the checkpoint of step {} cannot be restored: the job continues from step {}",
                          state_.checkpoints.last_step, newest.step));
  }
  state_.checkpoints.last_step = newest.step;
  state_.checkpoints.last_folder = newest.folder;
  state_.generations.last = std::max(state_.generations.last, newest.generation);
}

void CoordinatorCore::RetrySearch(const absl::Status& why, Instant now) {
  const std::string message = fmt::format("searching for a checkpoint: {}", std::string(why.message()));
  if (++state_.restoring.failed_searches > state_.options.max_searches) {
    return Fail(fmt::format("gave up after {} attempts; the last one: {}", state_.restoring.failed_searches, message),
                true, now);
  }
  Log(true, message);
  state_.recovery.retry_at =
      now.steady + state_.options.retry_wait * (int64_t{1} << std::min(state_.restoring.failed_searches - 1, 5));
}

// A checkpoint that verifies may be damaged later, or for one member only. The job never tries the same one without
// end: damage counts at once, another error when it repeats.
void CoordinatorCore::OnRestoreFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  const std::string why = fmt::format("{} could not restore its part: {}", member, fault.message());
  const bool pending = state_.generations.next && fault.generation() == state_.generations.next->generation &&
                       state_.restoring.position && state_.generations.next->origin == job::v1::STATE_ORIGIN_CHECKPOINT;
  if (!pending) return Log(true, why);
  const std::string folder = state_.restoring.position->folder;
  const bool skip = fault.permanent() || ++state_.restoring.failed_restores[folder] >= kRestoreAttempts;
  if (skip && state_.restoring.unrestorable.size() < kMaxUnrestorable)
    state_.restoring.unrestorable[folder] = {why, fault.permanent()};
  const Cause interruption = state_.recovery.cause;  // users see why the job restores, and which checkpoint it skips
  // Without a weight: there are few folders.
  const bool few = skip && state_.restoring.unrestorable.size() < kMaxUnrestorable;
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", folder, why), member},
              few ? std::nullopt : std::optional(RecoveryBudget::Weight::kFault), now);
  if (!interruption.text.empty()) state_.recovery.cause = interruption;
}

}  // namespace medley::worker

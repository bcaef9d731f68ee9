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
  if (!finding_ || over() || handed_over_) return;
  finding_ = false;
  if (!found.ok()) return RetrySearch(found.status(), now);
  failed_searches_ = 0;
  if (!found->refused.empty()) return Fail(found->refused, false, now);
  if (found->newest) {
    if (const absl::Status fits = CheckPosition(*found->newest); !fits.ok()) {
      unrestorable_[found->newest->folder] = {std::string(fits.message()), true};
      return Advance(now);  // searches again
    }
  }
  std::vector<std::string> reasons = found->rejected;
  for (const CheckpointSearch::Incomplete& folder : found->incomplete) {
    if (folder.step <= last_checkpoint_) reasons.push_back(folder.reason);  // its manifest may be lost
  }
  if (!found->newest && (last_checkpoint_ > 0 || !found->rejected.empty())) {
    const bool may_pass = found->unreadable ||
                          std::ranges::any_of(unrestorable_, [](const auto& folder) { return !folder.second.damaged; });
    return FailWithoutCheckpoint(reasons, may_pass, now);
  }
  for (const std::string& reason : found->rejected) Log(true, "skipped a checkpoint: " + reason);
  const bool same = restore_ && found->newest && restore_->folder == found->newest->folder;
  found_ = true;
  restore_ = found->newest;
  if (!same) restores_older_.clear();
  if (restore_) {
    const int64_t newest = last_checkpoint_;
    if (!same && (!found->rejected.empty() || restore_->step < newest)) {
      restores_older_ = fmt::format(
          "the job continues from the checkpoint of step {}, because a newer one cannot be restored: {}",
          restore_->step,
          reasons.empty() ? fmt::format("that of step {} is no longer on the volume", newest) : JoinReasons(reasons));
    }
    AdoptCheckpoint(*restore_);
  }
  if (!restore_ && from_generation_ > 0) {
    Log(true, "no checkpoint has been completed yet: the job starts from the seed again");
  }
  Advance(now);
}

// Damage does not pass, so another attempt would end in the same way: the job fails at once.
void CoordinatorCore::FailWithoutCheckpoint(const std::vector<std::string>& reasons, bool may_pass, Instant now) {
  const std::string saved =
      last_checkpoint_ > 0 ? fmt::format("step {} was saved", last_checkpoint_) : "earlier steps were saved";
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
  if (!ledger_) return absl::OkStatus();
  const job::v1::LedgerRecord own = ledger_->ToRecord();
  if (own.rows() != position.ledger.rows() || own.batch_size() != position.ledger.batch_size()) {
    return base::DataLoss("it is of {} rows in batches of {}, this job trains {} in batches of {}",
                          position.ledger.rows(), position.ledger.batch_size(), own.rows(), own.batch_size());
  }
  if (position.step <= ledger_->total_steps()) return absl::OkStatus();
  return base::DataLoss("it is of step {}, this job has {} steps", position.step, ledger_->total_steps());
}

// The journal may know a newer checkpoint that cannot be restored, or not know the newest one.
void CoordinatorCore::AdoptCheckpoint(const CheckpointPosition& newest) {
  if (newest.step < last_checkpoint_) {
    Log(true, fmt::format("the checkpoint of step {} cannot be restored: the job continues from step {}",
                          last_checkpoint_, newest.step));
  }
  last_checkpoint_ = newest.step;
  last_folder_ = newest.folder;
  last_generation_ = std::max(last_generation_, newest.generation);
}

void CoordinatorCore::RetrySearch(const absl::Status& why, Instant now) {
  const std::string message = fmt::format("searching for a checkpoint: {}", std::string(why.message()));
  if (++failed_searches_ > options_.max_searches) {
    return Fail(fmt::format("gave up after {} attempts; the last one: {}", failed_searches_, message), true, now);
  }
  Log(true, message);
  retry_at_ = now.steady + options_.retry_wait * (int64_t{1} << std::min(failed_searches_ - 1, 5));
}

// A checkpoint that verifies may be damaged later, or for one member only. The job never tries the same one without
// end: damage counts at once, another error when it repeats.
void CoordinatorCore::OnRestoreFault(const std::string& member, const job::v1::Fault& fault, Instant now) {
  const std::string why = fmt::format("{} could not restore its part: {}", member, fault.message());
  const bool pending =
      next_ && fault.generation() == next_->generation && restore_ && next_->origin == job::v1::STATE_ORIGIN_CHECKPOINT;
  if (!pending) return Log(true, why);
  const std::string folder = restore_->folder;
  const bool skip = fault.permanent() || ++failed_restores_[folder] >= kRestoreAttempts;
  if (skip && unrestorable_.size() < kMaxUnrestorable) unrestorable_[folder] = {why, fault.permanent()};
  const Cause interruption = last_interruption_;  // users see why the job restores, and which checkpoint it skips
  // Without a weight: there are few folders.
  const bool few = skip && unrestorable_.size() < kMaxUnrestorable;
  AbandonNext({job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", folder, why), member},
              few ? std::nullopt : std::optional(RecoveryBudget::Weight::kFault), now);
  if (!interruption.text.empty()) last_interruption_ = interruption;
}

}  // namespace medley::worker

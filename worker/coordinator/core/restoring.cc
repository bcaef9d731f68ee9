#include "worker/coordinator/core/restoring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::restoring {
namespace {

constexpr int kRestoreAttempts = 3;      // of a checkpoint that may become readable
constexpr size_t kMaxUnrestorable = 64;  // folders
constexpr size_t kShownReasons = 4;      // of a message

std::string JoinReasons(std::span<const std::string> reasons) {
  const std::string shown = fmt::to_string(fmt::join(reasons.first(std::min(reasons.size(), kShownReasons)), "; "));
  if (reasons.size() <= kShownReasons) return shown;
  return fmt::format("{}; and {} more", shown, reasons.size() - kShownReasons);
}

// Damage does not pass, so another attempt would end in the same way: the job fails at once.
Request FailWithout(const CoreState& view, const std::vector<std::string>& reasons, bool may_pass) {
  const int64_t last = view.checkpoints.last_step;
  const std::string saved = last > 0 ? fmt::format("step {} was saved", last) : "earlier steps were saved";
  return FailRequest{
      fmt::format("no checkpoint can be restored, although {} ({}). To start anew, delete the job and create it again: "
                  "the new job has an empty folder on the volume. To continue from another checkpoint, name its folder "
                  "in spec.checkpoint.from of the new job",
                  saved, reasons.empty() ? "the volume has none" : JoinReasons(reasons)),
      may_pass};
}

// A file that another process wrote may be whole and yet not fit this job.
absl::Status CheckPosition(const CoreState& view, const CheckpointPosition& position) {
  const absl::StatusOr<Ledger> at = Ledger::FromRecord(position.ledger);
  if (!at.ok()) return base::Annotate(at.status(), "its manifest");
  if (!view.training.ledger) return absl::OkStatus();
  const Ledger& ledger = *view.training.ledger;
  const job::v1::LedgerRecord own = ledger.ToRecord();
  if (own.rows() != position.ledger.rows() || own.batch_size() != position.ledger.batch_size()) {
    return base::DataLoss("it is of {} rows in batches of {}, this job trains {} in batches of {}",
                          position.ledger.rows(), position.ledger.batch_size(), own.rows(), own.batch_size());
  }
  if (position.step <= ledger.total_steps()) return absl::OkStatus();
  return base::DataLoss("it is of step {}, this job has {} steps", position.step, ledger.total_steps());
}

SearchResult SearchFailed(RestoringState& own, const CoreState& view, const absl::Status& why, Effects& out) {
  const std::string message = fmt::format("searching for a checkpoint: {}", std::string(why.message()));
  if (++own.failed_searches > view.options.max_searches) {
    return {.request = FailRequest{
                fmt::format("gave up after {} attempts; the last one: {}", own.failed_searches, message), true}};
  }
  out.Log(true, message);
  return {.retry_after = view.options.retry_wait * (int64_t{1} << std::min(own.failed_searches - 1, 5))};
}

}  // namespace

Request CheckDeadline(const CoreState& view, base::SteadyTime now) {
  if (!view.restoring.finding || now < view.restoring.find_deadline) return {};
  return FailRequest{
      fmt::format("the checkpoint volume did not answer within {:.0f} s while it was searched for a checkpoint",
                  base::ToSeconds(view.options.volume_timeout)),
      true};
}

void Search(RestoringState& own, const CoreState& view, base::SteadyTime now, Effects& out) {
  own.finding = true;
  own.find_deadline = now + view.options.volume_timeout;
  FindCheckpointCommand find{.reject_unreadable = own.failed_searches >= view.options.max_searches};
  for (const auto& [folder, why] : own.unrestorable) find.unusable[folder] = why.reason;
  out.Add(std::move(find));
}

void SearchAgain(RestoringState& own) { own.found = false; }

void Restored(RestoringState& own) {
  own.found = false;
  own.position.reset();
  own.why_older.clear();
  own.failed_restores.clear();
}

void TakePosition(RestoringState& own, CheckpointPosition position) { own.position = std::move(position); }

SearchResult OnFound(RestoringState& own, const CoreState& view, const absl::StatusOr<CheckpointSearch>& found,
                     Effects& out) {
  own.finding = false;
  if (!found.ok()) return SearchFailed(own, view, found.status(), out);
  own.failed_searches = 0;
  if (!found->refused.empty()) return {.request = FailRequest{found->refused}};
  if (found->newest) {
    if (const absl::Status fits = CheckPosition(view, *found->newest); !fits.ok()) {
      own.unrestorable[found->newest->folder] = {std::string(fits.message()), true};
      return {};  // the job searches again
    }
  }
  const int64_t last = view.checkpoints.last_step;
  std::vector<std::string> reasons = found->rejected;
  for (const CheckpointSearch::Incomplete& folder : found->incomplete) {
    if (folder.step <= last) reasons.push_back(folder.reason);  // its manifest may be lost
  }
  if (!found->newest && (last > 0 || !found->rejected.empty())) {
    const bool may_pass = found->unreadable || std::ranges::any_of(own.unrestorable, [](const auto& folder) {
                            return !folder.second.damaged;
                          });
    return {.request = FailWithout(view, reasons, may_pass)};
  }
  for (const std::string& reason : found->rejected) out.Log(true, "skipped a checkpoint: " + reason);
  const bool same = own.position && found->newest && own.position->folder == found->newest->folder;
  own.found = true;
  own.position = found->newest;
  if (!same) own.why_older.clear();
  if (!own.position) {
    if (view.generations.from > 0) {
      out.Log(true, "no checkpoint has been completed yet: the job starts from the seed again");
    }
    return {};
  }
  if (!same && (!found->rejected.empty() || own.position->step < last)) {
    own.why_older = fmt::format(
        "the job continues from the checkpoint of step {}, because a newer one cannot be restored: {}",
        own.position->step,
        reasons.empty() ? fmt::format("that of step {} is no longer on the volume", last) : JoinReasons(reasons));
  }
  return {.adopted = true};
}

Request OnFault(RestoringState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault,
                Effects& out) {
  const std::string why = fmt::format("{} could not restore its part: {}", member, fault.message());
  const std::optional<GenerationInfo>& next = view.generations.next;
  const bool pending = next && fault.generation() == next->generation && own.position &&
                       next->origin == job::v1::STATE_ORIGIN_CHECKPOINT;
  if (!pending) {
    out.Log(true, why);
    return {};
  }
  const std::string folder = own.position->folder;
  const bool skip = fault.permanent() || ++own.failed_restores[folder] >= kRestoreAttempts;
  if (skip && own.unrestorable.size() < kMaxUnrestorable) own.unrestorable[folder] = {why, fault.permanent()};
  // Without a weight: there are few folders.
  const bool few = skip && own.unrestorable.size() < kMaxUnrestorable;
  return AbandonRequest{{job::v1::SWITCH_CAUSE_MEMBER_FAULT, fmt::format("{}: {}", folder, why), member},
                        few ? std::nullopt : std::optional(RecoveryBudget::Weight::kFault)};
}

}  // namespace medley::worker::restoring

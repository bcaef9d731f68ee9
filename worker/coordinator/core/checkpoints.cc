#include "worker/coordinator/core/checkpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::checkpoints {
namespace {

constexpr int kMaxRewrites = 3;  // of the last checkpoint, when it was damaged
// Checkpoints that are asked for are written in at most 4 % of the time. Training does not wait for them.
constexpr int kAskedShare = 25;
constexpr base::nanoseconds kAskedWait = base::seconds(1);
// How long a program trains on that cannot run without a member that leaves: a replacement may come. Members stay for
// 25 s (kStopNotice), and saving takes some of them.
constexpr base::nanoseconds kTrainsOn = base::seconds(12);

}  // namespace

bool HasCommitted(const CoreState& view) {
  return view.checkpoints.last_step == view.training.ledger->committed() && !view.checkpoints.last_is_damaged;
}

std::array<int64_t, 3> Steps(const CheckpointsState& own) {
  return {own.last_step, own.writing ? own.writing->step : 0, own.pending ? own.pending->step : 0};
}

void Restore(CheckpointsState& own, const job::v1::CoordinatorState& journal) {
  own.last_step = journal.last_checkpoint_step();
  own.last_folder = journal.last_checkpoint_folder();
  if (journal.has_checkpoint_failure()) own.failure = journal.checkpoint_failure();
  own.failures = journal.checkpoint_failures();
}

void TakeOver(CheckpointsState& own, const CoreState& view, int attempts, base::SteadyTime now) {
  if (attempts > 0) {
    own.last_attempt = {view.generations.active->generation, view.training.ledger->committed(), attempts - 1};
  }
  // The one before may have given a checkpoint up, and nobody knows when it started the last one.
  if (view.options.checkpoints) own.started_at = now - view.options.checkpoint_interval;
}

void Want(CheckpointsState& own, bool wanted, base::SteadyTime now) {
  own.wanted = wanted;
  own.last = false;
  if (!wanted) return own.last_at.reset();
  const base::nanoseconds wait = kTrainsOn - std::min<base::nanoseconds>(2 * own.took, kTrainsOn);
  if (!own.last_at) own.last_at = now + wait;
}

void WantLast(CheckpointsState& own, base::SteadyTime now) {
  if (own.pending || own.writing || !own.last_at || now < *own.last_at) return;
  own.wanted = own.last = true;
  own.last_at = now + kAskedWait;  // if that one fails
}

bool StandsStill(const CoreState& view) {
  const CheckpointsState& own = view.checkpoints;
  return !own.pending && !own.writing && own.stands_still == view.generations.active->generation;
}

bool Consider(CheckpointsState& own, const CoreState& view, base::SteadyTime now) {
  if (view.options.is_program && !view.options.checkpoints) return false;  // it cannot be asked to save
  const std::optional<GenerationInfo>& next = view.generations.next;
  const bool late = now - own.started_at >= view.options.checkpoint_interval;
  // A volume that fails is tried at the usual times.
  const base::nanoseconds wait =
      own.asked_now ? base::nanoseconds(0) : std::max<base::nanoseconds>(kAskedWait, kAskedShare * own.took);
  const bool asked = own.asked && !own.failure && view.options.checkpoints && now - own.started_at >= wait;
  const bool boundary = next && generations::AllWarmed(*next);
  // A volume that completes checkpoints slowly gets no further one meanwhile, except before a member leaves.
  own.due = (((late || asked) && !own.writing) || own.wanted) && !own.pending && !boundary &&
            !view.hand_over.successor && !training::AllLeased(view) && view.training.ledger->leased() > own.last_step;
  if (!own.due || !training::IsSettled(view)) return false;
  own.due = false;
  return true;
}

void Start(CheckpointsState& own, const CoreState& view, int64_t step, base::SteadyTime now, Effects& out) {
  const GenerationInfo& active = *view.generations.active;
  const bool again = own.last_attempt.generation == active.generation && own.last_attempt.step == step;
  own.last_attempt = {active.generation, step, again ? own.last_attempt.number + 1 : 0};
  PendingCheckpoint& pending = own.pending.emplace();
  pending.step = step;
  pending.folder = fmt::format("step-{:08}-e{}", step, active.generation);
  if (again) pending.folder += fmt::format("-{}", own.last_attempt.number);
  pending.deadline = now + view.options.checkpoint_timeout;
  pending.last = std::exchange(own.last, false);
  own.started_at = now;
  own.wanted = own.asked = own.asked_now = false;
  job::v1::SessionResponse drain, message;
  drain.mutable_drain()->set_generation(active.generation);
  drain.mutable_drain()->set_step(step);
  message.mutable_checkpoint()->set_generation(active.generation);
  message.mutable_checkpoint()->set_step(step);
  message.mutable_checkpoint()->set_folder(pending.folder);
  for (const auto& [name, member] : active.members) {
    pending.waiting.insert(name);
    if (pending.last) out.Send(member.peer, drain);
    out.Send(member.peer, message);
  }
}

void Ask(CheckpointsState& own, bool now) {
  own.asked = true;
  own.asked_now = own.asked_now || now;
}

void Drop(CheckpointsState& own) { own.pending.reset(); }

void OnCheckpointed(CheckpointsState& own, const std::string& member, const job::v1::Checkpointed& done) {
  if (!own.pending || done.step() != own.pending->step || own.pending->waiting.erase(member) == 0) return;
  own.pending->files.insert(own.pending->files.end(), done.files().begin(), done.files().end());
}

Request Complete(CheckpointsState& own, const CoreState& view, base::SteadyTime now, Effects& out) {
  const Ledger& ledger = *view.training.ledger;
  if (!own.pending || own.writing || !own.pending->waiting.empty() || own.pending->step > ledger.committed()) return {};
  std::set<std::string> names;
  for (const job::v1::CheckpointFile& file : own.pending->files) {
    if (names.insert(file.name()).second) continue;
    return FailRequest{
        fmt::format("two members wrote the same file {} of checkpoint {}", file.name(), own.pending->folder)};
  }
  Ledger at = ledger;
  const absl::Status reset = at.ResetTo(own.pending->step);
  MEDLEY_CHECK(reset.ok(), std::string(reset.message()));
  const std::optional<job::v1::BestRecord>& best = view.best.kept;
  out.Add(WriteManifestCommand{own.pending->folder, view.generations.active->generation, own.pending->step,
                               at.ToRecord(), std::move(own.pending->files), best ? best->folder() : ""});
  if (own.pending->last) own.stands_still = view.generations.active->generation;
  own.writing = PendingManifest{own.pending->folder, own.pending->step, now + view.options.volume_timeout};
  own.pending.reset();
  return {};
}

ManifestResult OnManifestWritten(CheckpointsState& own, const std::string& folder, const absl::Status& status,
                                 base::SteadyTime now, Effects& out) {
  const int64_t step = own.writing->step;
  own.writing.reset();
  if (!status.ok()) {
    return {false,
            SaveFailedRequest{
                fmt::format("completing the checkpoint of step {}: {}", step, std::string(status.message())), folder}};
  }
  own.last_step = step;
  own.last_folder = folder;
  own.last_is_damaged = false;
  own.took = now - own.started_at;
  Saved(own, out);
  return {true, {}};
}

// Training goes on, and the next checkpoint is written at the usual time.
Request OnFault(CheckpointsState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault,
                Effects& out) {
  const std::string why = fmt::format("{} could not write its part of the checkpoint of step {}: {}", member,
                                      fault.step(), fault.message());
  const std::optional<GenerationInfo>& active = view.generations.active;
  const bool pending = active && fault.generation() == active->generation && own.pending &&
                       own.pending->step == fault.step() && own.pending->waiting.contains(member);
  if (!pending) {
    out.Log(true, why);
    return {};
  }
  const std::string folder = own.pending->folder;
  own.pending.reset();
  return SaveFailedRequest{why, folder};
}

Request CheckDeadline(CheckpointsState& own, const CoreState& view, base::SteadyTime now) {
  if (!own.pending || own.pending->waiting.empty() || now < own.pending->deadline) return {};
  const std::string why = fmt::format("the checkpoint of step {} was not written in time; missing parts: {}",
                                      own.pending->step, fmt::join(own.pending->waiting, ", "));
  const std::string folder = own.pending->folder;
  own.pending.reset();
  if (training::AllCommitted(view)) return FailRequest{why, true};
  return SaveFailedRequest{why, folder};
}

void Saved(CheckpointsState& own, Effects& out) {
  if (own.failure) out.Log(false, "the checkpoint volume can be written again");
  own.failure.reset();
  own.final_failures = 0;
}

void Failed(CheckpointsState& own, const std::string& why, const std::string& folder, base::WallTime now,
            Effects& out) {
  out.Log(true, why);
  ++own.failures;
  if (!own.failure) {
    const int64_t nanos = std::chrono::duration_cast<base::nanoseconds>(now.time_since_epoch()).count();
    own.failure.emplace().mutable_since()->set_seconds(nanos / 1'000'000'000);
  }
  own.failure->set_message(why);
  if (!folder.empty()) out.Add(DiscardCheckpointCommand{folder});
}

EndFailure FailedAtEnd(CheckpointsState& own, const CoreState& view, const std::string& why, base::SteadyTime now) {
  EndFailure failure;
  failure.wait = std::min<base::nanoseconds>(view.options.retry_wait * (int64_t{1} << std::min(own.final_failures, 5)),
                                             base::seconds(30));
  if (own.final_failures++ == 0) own.final_since = now;
  if (view.ending.suspending) return failure;  // until the deadline of the suspension
  if (own.final_failures > view.options.max_fruitless && now - own.final_since >= view.options.final_save_wait) {
    failure.request = FailRequest{why, true};
  }
  return failure;
}

// The members still hold the state of a checkpoint that was damaged since it was completed.
void Judge(CheckpointsState& own, const CoreState& view, int64_t step, const absl::Status& status) {
  own.last_is_damaged = absl::IsDataLoss(status) && view.generations.mode == Mode::kTraining &&
                        generations::StateStep(view) == step && own.rewrites++ < kMaxRewrites;
}

void Adopt(CheckpointsState& own, const CheckpointPosition& newest, Effects& out) {
  if (newest.step < own.last_step) {
    out.Log(true, fmt::format("the checkpoint of step {} cannot be restored: the job continues from step {}",
                              own.last_step, newest.step));
  }
  own.last_step = newest.step;
  own.last_folder = newest.folder;
}

}  // namespace medley::worker::checkpoints

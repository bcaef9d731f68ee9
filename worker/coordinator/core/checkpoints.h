// The checkpoints that the job writes: when one is due, that all members write their files, and that the shell
// completes it.
//
// Data in: files of members, results of the shell. The job trains on, whatever is wrong with the volume. Only the end
// of the job must be saved.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;
struct CheckpointPosition;

struct CheckpointsState {
  std::optional<PendingCheckpoint> pending;
  std::optional<PendingManifest> writing;
  CheckpointAttempt last_attempt;
  bool due = false;                                   // one is to be written as soon as replicas agree
  bool wanted = false;                                // a member without replacement leaves
  std::optional<base::SteadyTime> last_at;            // when a program saves for the last time before that
  bool last = false;                                  // the one that is wanted is that
  int64_t stands_still = 0;                           // the generation whose program has done so
  bool asked = false;                                 // one soon would let a lost server be rebuilt
  bool asked_now = false;                             // at once; with `asked`
  base::nanoseconds took{0};                          // the last one, from its start until it was complete
  base::SteadyTime started_at{};                      // when the last one was started
  std::optional<job::v1::CheckpointFailure> failure;  // since the last success
  int64_t failures = 0;                               // since the job's start
  int final_failures = 0;                             // in a row, of saving the end of the job
  base::SteadyTime final_since{};                     // the first of them
  int64_t last_step = 0;                              // of the last complete checkpoint; 0: none
  std::string last_folder;                            // its folder; empty: not known
  bool last_is_damaged = false;                       // while members hold its state
  int rewrites = 0;                                   // of a last checkpoint that was damaged, at the end
};

namespace checkpoints {

// Whether the last complete checkpoint has the committed step, and can be read.
bool HasCommitted(const CoreState& view);
// The steps to which the job may have to return: of the last checkpoint, and of those that are being written; 0: none.
std::array<int64_t, 3> Steps(const CheckpointsState& own);

void Restore(CheckpointsState& own, const job::v1::CoordinatorState& journal);
// The job was taken over with this number of the last attempt, which may not have been completed: one is due.
void TakeOver(CheckpointsState& own, const CoreState& view, int attempts, base::SteadyTime now);
// As soon as possible, because a member leaves; or no longer, because it has a replacement.
void Want(CheckpointsState& own, bool wanted, base::SteadyTime now);
// The program cannot run without that member: it saves shortly before the loss, and then stands still.
void WantLast(CheckpointsState& own, base::SteadyTime now);
// Whether the program of the generation in force does.
bool StandsStill(const CoreState& view);
// A lost server can be rebuilt from a newer one only, or soon. `now`: at once; otherwise so rarely that these
// checkpoints take little of the job's time.
void Ask(CheckpointsState& own, bool now);
// Whether one is due now. Returns whether it is to be started at once.
bool Consider(CheckpointsState& own, const CoreState& view, base::SteadyTime now);
void Start(CheckpointsState& own, const CoreState& view, int64_t step, base::SteadyTime now, Effects& out);
void Drop(CheckpointsState& own);  // the one that members write, because they stop
void OnCheckpointed(CheckpointsState& own, const std::string& member, const job::v1::Checkpointed& done);
// Lets the shell complete the checkpoint once every member has written its file and the step is committed.
Request Complete(CheckpointsState& own, const CoreState& view, base::SteadyTime now, Effects& out);

struct ManifestResult {
  bool saved = false;  // the checkpoint is complete
  Request request;
};
ManifestResult OnManifestWritten(CheckpointsState& own, const std::string& folder, const absl::Status& status,
                                 base::SteadyTime now, Effects& out);
Request OnFault(CheckpointsState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault,
                Effects& out);
// Members have not written in time.
Request CheckDeadline(CheckpointsState& own, const CoreState& view, base::SteadyTime now);
void Saved(CheckpointsState& own, Effects& out);  // a checkpoint or the model was written
void Failed(CheckpointsState& own, const std::string& why, const std::string& folder, base::WallTime now, Effects& out);
// When the end of the job could not be saved: how long to wait before the next attempt, or that it was the last one.
struct EndFailure {
  base::nanoseconds wait{0};
  Request request;
};
EndFailure FailedAtEnd(CheckpointsState& own, const CoreState& view, const std::string& why, base::SteadyTime now);
// The finished model could not be written from the checkpoint of `step`.
void Judge(CheckpointsState& own, const CoreState& view, int64_t step, const absl::Status& status);
// The job continues from this one. The journal may know a newer one that cannot be restored, or not know the newest.
void Adopt(CheckpointsState& own, const CheckpointPosition& newest, Effects& out);

}  // namespace checkpoints
}  // namespace medley::worker

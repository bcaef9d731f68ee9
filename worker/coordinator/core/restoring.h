// Which checkpoint the job continues from, and what happens when none can be restored.
//
// Data in: what the shell found, faults of members that restore. A checkpoint that is damaged is tried once.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/effects.h"

namespace medley::worker {

struct CoreState;

// A checkpoint that can be restored.
struct CheckpointPosition {
  std::string folder;
  int64_t generation = 0;  // that wrote it
  int64_t step = 0;
  job::v1::LedgerRecord ledger;
};

// What the shell found when it looked for checkpoints.
struct CheckpointSearch {
  std::optional<CheckpointPosition> newest;  // the newest that verifies
  std::vector<std::string> rejected;         // why newer checkpoints of this job cannot be restored
  bool unreadable = false;                   // one of them could not be read, which may pass
  struct Incomplete {
    int64_t step = 0;
    std::string reason;
  };
  std::vector<Incomplete> incomplete;  // newer folders without a manifest: never completed, or the manifest is lost
  std::string refused;  // why the job cannot continue from the checkpoint that it names; empty: it can, or names none
};

struct RestoringState {
  bool finding = false;                        // a FindCheckpointCommand has no result yet
  base::SteadyTime find_deadline{};            // for its result
  int failed_searches = 0;                     // searches in a row that ended with an error
  bool found = false;                          // `position` has the result of a FindCheckpointCommand
  std::optional<CheckpointPosition> position;  // nullopt: start from the seed
  std::string why_older;                       // why `position` is not the newest; empty: it is
  // Checkpoints that verify but could not be restored, by folder.
  struct Unrestorable {
    std::string reason;
    bool damaged = true;  // false: it could not be read, which may pass
  };
  std::map<std::string, Unrestorable> unrestorable;
  std::map<std::string, int> failed_restores;  // by folder, of those that may be restored yet
};

namespace restoring {

// Whether the volume has not answered for too long.
Request CheckDeadline(const CoreState& view, base::SteadyTime now);

void Search(RestoringState& own, const CoreState& view, base::SteadyTime now, Effects& out);
void SearchAgain(RestoringState& own);  // before the next generation starts from a checkpoint
void Restored(RestoringState& own);     // a generation is in force
void TakePosition(RestoringState& own, CheckpointPosition position);

struct SearchResult {
  Request request;
  std::optional<base::nanoseconds> retry_after;  // the search has failed
  bool adopted = false;                          // the job continues from `position`
};
// Precondition: `own.finding`.
SearchResult OnFound(RestoringState& own, const CoreState& view, const absl::StatusOr<CheckpointSearch>& found,
                     Effects& out);
// A checkpoint that verifies may be damaged later, or for one member only. The job never tries the same one without
// end: damage counts at once, another error when it repeats.
Request OnFault(RestoringState& own, const CoreState& view, const std::string& member, const job::v1::Fault& fault,
                Effects& out);

}  // namespace restoring
}  // namespace medley::worker

// Which checkpoint the job continues from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

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

}  // namespace medley::worker

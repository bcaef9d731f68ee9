// The checkpoints that the job writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CheckpointsState {
  std::optional<PendingCheckpoint> pending;
  std::optional<PendingManifest> writing;
  CheckpointAttempt last_attempt;
  bool due = false;               // one is to be written as soon as replicas agree
  bool wanted = false;            // a member without replacement leaves: checkpoint as soon as possible
  base::SteadyTime started_at{};  // when the last one was started
  std::optional<job::v1::CheckpointFailure> failure;  // since the last success
  int64_t failures = 0;                               // since the job's start
  int final_failures = 0;                             // in a row, of saving the end of the job
  base::SteadyTime final_since{};                     // the first of them
  int64_t last_step = 0;                              // of the last complete checkpoint; 0: none
  std::string last_folder;                            // its folder; empty: not known
  bool last_is_damaged = false;                       // while members hold its state
  int rewrites = 0;                                   // of a last checkpoint that was damaged, at the end
};

}  // namespace medley::worker

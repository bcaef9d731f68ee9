// The model that the job ends with: the best one that was evaluated, or the last.
#pragma once

#include <cstdint>
#include <optional>

#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"

namespace medley::worker {

struct BestState {
  std::optional<job::v1::BestRecord> kept;  // whose checkpoint is kept
  int saves = 0;        // failed attempts to save the model of the committed step, which is the best
  int64_t unsaved = 0;  // the step of a better one that could not be saved
  int restores = 0;     // attempts to restore the exported model at the end
  std::optional<job::v1::ExportedState> exported;
};

}  // namespace medley::worker

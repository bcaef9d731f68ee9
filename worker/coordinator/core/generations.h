// The generation in force and the one that is being prepared.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/coordinator/core/generation.h"

namespace medley::worker {

enum class Mode {
  kIdle,      // no member holds the state
  kTraining,  // the active generation trains
  kHalting,   // the survivors of the active generation are asked to halt
  kHalted     // the survivors have halted; their state is at GenerationsState::halted_step
};

struct GenerationsState {
  std::optional<GenerationInfo> active;  // its members hold the state
  std::optional<GenerationInfo> next;    // the generation being prepared
  Mode mode = Mode::kIdle;
  int64_t last = 0;  // the highest number that was given
  int64_t from = 0;  // the last generation that was in force; 0: none yet
  std::vector<job::v1::SwitchRecord> switches;
  base::SteadyTime halt_deadline{};
  int64_t halted_step = 0;  // the survivors' step in Mode::kHalted
};

}  // namespace medley::worker

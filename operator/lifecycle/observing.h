// Observing: what the coordinator reports becomes status, conditions and metrics.
#pragma once

#include <cstdint>

namespace medley::ops::lifecycle {

class Pass;

struct ObservingState {
  int64_t last_switch = 0;  // the newest generation whose switch was recorded
};

// Needs `pass.observed`.
void RecordObservation(Pass& pass);

}  // namespace medley::ops::lifecycle

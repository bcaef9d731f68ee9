// Observing: what the coordinator reports becomes status, conditions and metrics.
#pragma once

#include <cstdint>

#include "common/job_result/job_result.h"

namespace medley::ops::lifecycle {

class Pass;

struct ObservingState {
  static constexpr char kOwner[] = "observing";
  int64_t last_switch = 0;  // the newest generation whose switch was recorded
};

// Needs `pass.observed`.
void RecordObservation(Pass& pass);
// The result that the coordinator left in its pod; what it does not say stays as it was observed last.
void RecordResult(Pass& pass, const job_result::JobResult& result);

}  // namespace medley::ops::lifecycle

// What the coordinator shows, and what it writes down: functions of the whole state, which they do not change.
#pragma once

#include "medley/job/v1/coordinator.pb.h"
#include "medley/job/v1/journal.pb.h"
#include "worker/coordinator/core/generation.h"

namespace medley::worker {

struct CoreState;

// For the operator and users.
job::v1::Observation Observe(const CoreState& view, Instant now);
// The journal: all that another process needs to continue. Members, and what they can report again, are not in it.
job::v1::CoordinatorState DurableState(const CoreState& view, Instant now);

}  // namespace medley::worker

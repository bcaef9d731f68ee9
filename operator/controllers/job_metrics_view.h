// The metrics of one job: a snapshot at the end of each pass. Pure.
#pragma once

#include "operator/lifecycle/lifecycle.h"
#include "operator/telemetry/job_snapshot.h"

namespace medley::ops {

// `observed`: the coordinator's report by which the pass was decided; null: none.
JobSnapshot SnapshotOf(const lifecycle::JobInput& input, const lifecycle::Memory& memory, const Observation* observed);

}  // namespace medley::ops

// The least that a job can cost on a record whose future is known: a bound for every policy.
//
// A dynamic program over ticks, whole ticks of work, and where units run or the checkpoint lies. As the bound of the
// published comparison (SkyNomad, NSDI '27: "Optimal"), it rounds a start up to whole ticks, so that a policy that
// gains a part of a tick may be a little below it.
#pragma once

#include <absl/status/statusor.h>

#include "cli/traces/world.h"

namespace medley::cli::traces {

// What Simulate makes of the best plan. Errors: those of Simulate; ResourceExhausted for a job of more than 4e8 states;
// FailedPrecondition: nothing finishes the job in time.
absl::StatusOr<Outcome> SimulateOptimum(const Trace& trace, const Egress& egress, const TraceJob& job);

}  // namespace medley::cli::traces

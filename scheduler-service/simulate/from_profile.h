// Durations from what the planners know: the profile of a model (docs/design/simulator.md). Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/model/model.h"
#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

// Seconds of an operation on one replica that takes `share` of a step of `samples`, while no CPU quota holds it up: the
// terms of scheduler-service/cost, (1 - alpha) c + alpha c share, for `samples` instead of the profile's batch, without
// the processor time of its synchronisation. The forward pass takes a third. Errors: InvalidArgument naming the
// operation and the pool that it has no profile for.
absl::StatusOr<double> ComputeSeconds(const model::Profile& profile, int operation, const std::string& pool,
                                      double share, int samples);

// `samples`: of a step. Where the profile has a link between two pools, messages and reductions follow from their
// bytes; elsewhere from the layers' transferSeconds and syncSeconds. Errors: InvalidArgument naming the operation and
// the pool that it has no profile for, or a value that is negative or not finite.
absl::StatusOr<Durations> DurationsFromProfile(const program::Program& program, const model::Profile& profile,
                                               int samples);

}  // namespace medley::sched

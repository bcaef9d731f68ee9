// How often replicas that differ average their parameters. Pure.
#pragma once

#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

// The part of the steps after which replicas that differ average their parameters, by the mode of the program: all,
// none, Sync::fraction, or as many as take Sync::target_ratio of the mean time of computation.
double AgreeingPart(const program::Program& program, const Durations& durations, int samples);

}  // namespace medley::sched

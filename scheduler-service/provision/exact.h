// The cheapest units for a given schedule: the true optimum (planning.md section 3).
//
// For a throughput X every stage needs its smallest k with throughput(k) >= X, so the optimum is at a breakpoint
// X in { throughput_i(k) }. Beginning with the units that the required throughput needs, only the slowest stages are
// raised, which visits each breakpoint once; use grows with X, so the first step over a limit ends the walk, and so
// does a step from which a bound says that no faster pipeline is cheaper.
//
// Pure and thread-safe. Time: O(stages * units visited).
#pragma once

#include <optional>
#include <vector>

#include "common/model/planning.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// `stages`: layers and types; their units are not read. Nothing when no unit counts meet the constraints.
std::optional<Provisioned> ProvisionExact(const Problem& problem, std::vector<StageChoice> stages);

// Why ProvisionExact found nothing: constraints that the smallest sufficient units violate, limits put aside; or the
// throughput that this schedule cannot reach with any units.
std::vector<model::Reason> WhyNotProvisioned(const Problem& problem, std::vector<StageChoice> stages);

}  // namespace medley::sched

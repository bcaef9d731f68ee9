// Computes the cheapest units for a given schedule: the true optimum.
//
// At a throughput X, every stage needs the smallest number of units k with throughput(k) >= X. So the optimum is at a
// breakpoint X in { throughput_i(k) }. The search starts with the units for the required throughput and then adds units
// only to the slowest stages, which visits each breakpoint once. The number of units grows with X, so the search ends
// at the first step that exceeds a limit, or when a lower bound shows that no faster pipeline is cheaper.
//
// Pure and thread-safe. Time: O(stages * units visited).
#pragma once

#include <optional>
#include <vector>

#include "common/model/forward.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// `stages` have layers and types; their units are ignored. nullopt if no numbers of units meet the constraints.
std::optional<Provisioned> ProvisionExact(const Problem& problem, std::vector<StageChoice> stages);

// Explains why ProvisionExact returned nullopt: the constraints that the smallest sufficient units violate, or the
// throughput that this schedule cannot reach with any number of units.
std::vector<model::Reason> WhyNotProvisioned(const Problem& problem, std::vector<StageChoice> stages);

}  // namespace medley::sched

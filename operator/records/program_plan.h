// Plans a job of a program: which pool, and how many of its units. Pure, thread-safe.
//
// A program cannot be divided into stages, and Medley does not know its gradients, so the scheduling service's planners
// have nothing to plan. What is left is a choice of pool and size, and all of them are tried
// (docs/adr/0086-a-program-is-measured-by-running-it.md).
#pragma once

#include <vector>

#include "common/model/forward.h"

namespace medley::ops {

// `request`: its model is the one layer of the program's profile, whose compute_seconds are those of a step on one
// unit; k units take compute_seconds / k. `legal_units`: the sizes that may be chosen; empty: any. The best by the
// request's objective within its constraints; of equally good ones, that of fewer units, then of the pool first named.
// Without one, the reasons say what the best sizes lack.
model::PlanResult PlanProgram(const model::PlanRequest& request, const std::vector<int>& legal_units);

}  // namespace medley::ops

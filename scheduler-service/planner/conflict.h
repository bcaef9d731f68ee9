// Finds the smallest conflict of an infeasible request: the smallest set of constraints that no plan meets, even if all
// other constraints are lifted. Internal to planner/.
//
// The algorithm uses implicit hitting sets (A. Ignatiev, A. Previti, M. Liffiton, J. Marques-Silva, "Smallest MUS
// extraction with minimal hitting set dualization", CP 2015). A correction set is a set of constraints whose removal
// makes the request feasible; every conflict contains an element of every correction set. In each step:
// 1. Find a smallest set that hits all known correction sets.
// 2. If no plan meets this set, it is a smallest conflict.
// 3. Otherwise the constraints that such a plan violates, reduced to a minimal set, are a new correction set.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/planner/constraint_set.h"
#include "scheduler-service/planning/budget.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// Returns the request with all constraints of `all` lifted except those in `kept`.
model::PlanRequest LiftAllBut(model::PlanRequest request, const std::vector<Constraint>& all,
                              const std::vector<Constraint>& kept);

// The cheapest plan of a request; nullopt if the request is infeasible or the budget is spent.
std::optional<Provisioned> CheapestPlan(const model::PlanRequest& request, const Budget& budget);

// Returns a subset of `all` (ConstraintsOf), in the same order. Deterministic if there are several smallest conflicts.
// Empty if the request is feasible, if it is infeasible even without constraints, or if the budget is spent.
std::vector<Constraint> SmallestConflict(const model::PlanRequest& request, const std::vector<Constraint>& all,
                                         const Budget& budget);

}  // namespace medley::sched

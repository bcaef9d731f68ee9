// The smallest set of constraints of a request that cannot hold together. Internal to planner/.
//
// A set is a conflict when no plan keeps all of it, everything else lifted. The smallest one is found by implicit
// hitting sets (A. Ignatiev, A. Previti, M. Liffiton, J. Marques-Silva, "Smallest MUS extraction with minimal hitting
// set dualization", CP 2015): a smallest set that hits every correction set known so far is either a conflict, and
// then no smaller one exists, or a plan keeps it; what that plan violates, made as small as further plans allow, is a
// new correction set.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/planner/constraint_set.h"
#include "scheduler-service/planner/planner.h"

namespace medley::sched {

// The request with every one of `all` lifted but those of `kept`.
model::PlanRequest LiftAllBut(model::PlanRequest request, const std::vector<Constraint>& all,
                              const std::vector<Constraint>& kept);

// The cheapest plan of a request; none: infeasible, or the budget is spent.
std::optional<Provisioned> CheapestPlan(const model::PlanRequest& request, const Budget& budget);

// Some of `all` (ConstraintsOf), in its order. Of several smallest sets always the same one. Empty: there is a plan
// after all, or none even without any constraint, or the budget was spent first.
std::vector<Constraint> SmallestConflict(const model::PlanRequest& request, const std::vector<Constraint>& all,
                                         const Budget& budget);

}  // namespace medley::sched

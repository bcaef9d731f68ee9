// The constraints of a request. Each one can be lifted or changed separately. Internal to planner/.
//
// Pure and thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/model/forward.h"

namespace medley::sched {

enum class ConstraintKind {
  kMinThroughput,
  kDeadline,
  kMaxCostPerHour,
  kBudget,
  kMaxUnits,
  kMinUnits,
  kLimit,
  kMemory
};

struct Constraint {
  ConstraintKind kind = ConstraintKind::kLimit;
  int type = -1;  // kLimit, kMemory: index into resources
  bool operator==(const Constraint&) const = default;
};

// Returns the constraints in the order in which reasons are reported: goals first, then limits and memory by type.
std::vector<Constraint> ConstraintsOf(const model::PlanRequest& request);

// The bound in the request. Units, in the order of ConstraintKind: samples/s, seconds, USD/h, USD, units, units of a
// stage, units, bytes.
double BoundOf(const model::PlanRequest& request, const Constraint& constraint);
void SetBound(model::PlanRequest& request, const Constraint& constraint, double bound);
// Removes a constraint from the request. A limit is set to the largest value that a request may have.
void Lift(model::PlanRequest& request, const Constraint& constraint);

// The name in model::Reason::constraint.
std::string NameOf(const Constraint& constraint);

// True if `reason`, which Evaluate returned, is a violation of this constraint.
bool IsViolationOf(const model::PlanRequest& request, const Constraint& constraint, const model::Reason& reason);

}  // namespace medley::sched

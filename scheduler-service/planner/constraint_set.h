// The constraints of a request, each of which can be lifted or moved on its own. Internal to planner/.
//
// Pure and thread-safe.
#pragma once

#include <string>
#include <vector>

#include "common/model/planning.h"

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

// In the order in which reasons are given: goals first, then limits and memory by type.
std::vector<Constraint> ConstraintsOf(const model::PlanRequest& request);

// The bound as the request has it: samples/s, seconds, USD/h, USD, units, units of a stage, units, bytes.
double BoundOf(const model::PlanRequest& request, const Constraint& constraint);
void SetBound(model::PlanRequest& request, const Constraint& constraint, double bound);
// As if it had not been asked for (a limit becomes the largest that a request may have).
void Lift(model::PlanRequest& request, const Constraint& constraint);

// The name in model::Reason::constraint.
std::string NameOf(const Constraint& constraint);

// Whether `reason`, a violation that Evaluate found, is one of this constraint.
bool IsViolationOf(const model::PlanRequest& request, const Constraint& constraint, const model::Reason& reason);

}  // namespace medley::sched

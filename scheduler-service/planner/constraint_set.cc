#include "scheduler-service/planner/constraint_set.h"

#include "common/base/status.h"
#include "common/model/planning.h"
#include "common/model/reason.h"
#include "common/model/resource.h"

namespace medley::sched {
namespace {

constexpr int kAmple = 1'000'000;  // the largest limit that a request may have

model::Resource& TypeOf(model::PlanRequest& request, const Constraint& c) {
  return request.resources[static_cast<size_t>(c.type)];
}
const model::Resource& TypeOf(const model::PlanRequest& request, const Constraint& c) {
  return request.resources[static_cast<size_t>(c.type)];
}

}  // namespace

std::vector<Constraint> ConstraintsOf(const model::PlanRequest& request) {
  std::vector<Constraint> out;
  const model::Constraints& c = request.constraints;
  if (c.min_throughput > 0) out.push_back({ConstraintKind::kMinThroughput});
  if (c.deadline_seconds > 0) out.push_back({ConstraintKind::kDeadline});
  if (c.max_cost_per_hour > 0) out.push_back({ConstraintKind::kMaxCostPerHour});
  if (c.budget_usd > 0) out.push_back({ConstraintKind::kBudget});
  if (c.max_units > 0) out.push_back({ConstraintKind::kMaxUnits});
  if (c.min_units > 1) out.push_back({ConstraintKind::kMinUnits});
  for (size_t t = 0; t < request.resources.size(); ++t) {
    out.push_back({ConstraintKind::kLimit, static_cast<int>(t)});
  }
  for (size_t t = 0; t < request.resources.size(); ++t) {
    if (request.resources[t].memory_bytes > 0) out.push_back({ConstraintKind::kMemory, static_cast<int>(t)});
  }
  return out;
}

double BoundOf(const model::PlanRequest& request, const Constraint& constraint) {
  const model::Constraints& c = request.constraints;
  switch (constraint.kind) {
    case ConstraintKind::kMinThroughput:
      return c.min_throughput;
    case ConstraintKind::kDeadline:
      return c.deadline_seconds;
    case ConstraintKind::kMaxCostPerHour:
      return c.max_cost_per_hour;
    case ConstraintKind::kBudget:
      return c.budget_usd;
    case ConstraintKind::kMaxUnits:
      return c.max_units;
    case ConstraintKind::kMinUnits:
      return c.min_units;
    case ConstraintKind::kLimit:
      return TypeOf(request, constraint).limit;
    case ConstraintKind::kMemory:
      return TypeOf(request, constraint).memory_bytes;
  }
  MEDLEY_CHECK(false, "unknown kind of constraint");
  return 0;
}

void SetBound(model::PlanRequest& request, const Constraint& constraint, double bound) {
  model::Constraints& c = request.constraints;
  switch (constraint.kind) {
    case ConstraintKind::kMinThroughput:
      c.min_throughput = bound;
      return;
    case ConstraintKind::kDeadline:
      c.deadline_seconds = bound;
      return;
    case ConstraintKind::kMaxCostPerHour:
      c.max_cost_per_hour = bound;
      return;
    case ConstraintKind::kBudget:
      c.budget_usd = bound;
      return;
    case ConstraintKind::kMaxUnits:
      c.max_units = static_cast<int>(bound);
      return;
    case ConstraintKind::kMinUnits:
      c.min_units = static_cast<int>(bound);
      return;
    case ConstraintKind::kLimit:
      TypeOf(request, constraint).limit = static_cast<int>(bound);
      return;
    case ConstraintKind::kMemory:
      TypeOf(request, constraint).memory_bytes = bound;
      return;
  }
}

void Lift(model::PlanRequest& request, const Constraint& constraint) {
  const double lifted = constraint.kind == ConstraintKind::kLimit      ? kAmple
                        : constraint.kind == ConstraintKind::kMinUnits ? 1
                                                                       : 0;
  SetBound(request, constraint, lifted);
}

std::string NameOf(const Constraint& constraint) {
  switch (constraint.kind) {
    case ConstraintKind::kMinThroughput:
      return "minThroughput";
    case ConstraintKind::kDeadline:
      return "deadline";
    case ConstraintKind::kMaxCostPerHour:
      return "maxCostPerHour";
    case ConstraintKind::kBudget:
      return "budget";
    case ConstraintKind::kMaxUnits:
      return "maxUnits";
    case ConstraintKind::kMinUnits:
      return "minUnits";
    case ConstraintKind::kLimit:
      return "limit";
    case ConstraintKind::kMemory:
      return "memory";
  }
  return "";
}

bool IsViolationOf(const model::PlanRequest& request, const Constraint& constraint, const model::Reason& reason) {
  if (NameOf(constraint) != reason.constraint) return false;
  return constraint.type < 0 || TypeOf(request, constraint).name == reason.resource_type;
}

}  // namespace medley::sched

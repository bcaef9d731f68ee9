#include "scheduler-service/planner/reasons.h"

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/planner/conflict.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/provision/exact.h"

namespace medley::sched {
namespace {

constexpr double kPrecision = 1e-6;  // relative precision of bounds that are not whole numbers
constexpr int kBisections = 60;

bool IsWhole(const Constraint& c) {
  return c.kind == ConstraintKind::kLimit || c.kind == ConstraintKind::kMaxUnits || c.kind == ConstraintKind::kMinUnits;
}

// The value of `plan` for the quantity that a constraint bounds.
double ValueOf(const Problem& problem, const Constraint& c, const Provisioned& plan) {
  const Score& score = plan.score;
  double value = 0;
  switch (c.kind) {
    case ConstraintKind::kMinThroughput:
      return score.throughput;
    case ConstraintKind::kDeadline:
      return problem.total_samples() / score.throughput;
    case ConstraintKind::kMaxCostPerHour:
      return score.hourly;
    case ConstraintKind::kBudget:
      return score.cost;
    case ConstraintKind::kLimit:
      return UnitsByType(problem, plan.stages, score.server_units)[static_cast<size_t>(c.type)];
    case ConstraintKind::kMaxUnits:
      for (const StageChoice& s : plan.stages) value += s.units;
      return value;
    case ConstraintKind::kMinUnits:
      value = plan.stages[0].units;
      for (const StageChoice& s : plan.stages) value = std::min<double>(value, s.units);
      return value;
    case ConstraintKind::kMemory:
      for (const StageChoice& s : plan.stages) {
        if (s.type == c.type) value = std::max(value, problem.LocalBytes(s.first, s.last, s.type));
      }
      return value;
  }
  return value;
}

// The bound for `c`, nearest to the current one, with which `request` becomes feasible. nullopt if it is infeasible
// even without `c`, or if the budget is spent.
std::optional<double> NearestFeasible(const Problem& problem, model::PlanRequest request, const Constraint& c,
                                      const Budget& budget) {
  double infeasible = BoundOf(request, c);
  Lift(request, c);
  const auto lifted = CheapestPlan(request, budget);
  if (!lifted) return std::nullopt;
  double feasible = ValueOf(problem, c, *lifted);
  for (int i = 0; i < kBisections && !budget.Spent(); ++i) {
    const double apart = std::abs(feasible - infeasible);
    if (apart <= (IsWhole(c) ? 1 : kPrecision * std::abs(feasible))) break;
    double middle = infeasible + (feasible - infeasible) / 2;
    if (IsWhole(c)) middle = std::floor(middle);
    SetBound(request, c, middle);
    const auto plan = CheapestPlan(request, budget);
    if (!plan) {
      infeasible = middle;
      continue;
    }
    const double value = ValueOf(problem, c, *plan);
    feasible = std::abs(value - infeasible) < std::abs(middle - infeasible) ? value : middle;
  }
  return feasible;
}

// Format `value` with few digits, rounded up or down.
std::string Up(double value) {
  const int digits = value >= 1000 ? 0 : value >= 10 ? 1 : 4;
  const double scale = std::pow(10, digits);
  return base::FormatDecimal(std::ceil(value * scale * (1 - 1e-12)) / scale, digits);
}
std::string Down(double value) {
  const int digits = value >= 1000 ? 0 : value >= 10 ? 1 : 4;
  const double scale = std::pow(10, digits);
  return base::FormatDecimal(std::floor(value * scale * (1 + 1e-12)) / scale, digits);
}
std::string Plain(double value) { return base::FormatDecimal(value, 6); }

std::string Sentence(const model::PlanRequest& request, const Constraint& c, double bound, double best) {
  const std::string type = c.type >= 0 ? request.resources[static_cast<size_t>(c.type)].name : "";
  switch (c.kind) {
    case ConstraintKind::kMinThroughput:
      return fmt::format("reaches at most {} samples/s with the other constraints, minThroughput is {}: lower it to {}",
                         Down(best), Plain(bound), Down(best));
    case ConstraintKind::kDeadline:
      return fmt::format("takes at least {} s with the other constraints, the deadline is in {} s: allow {} s",
                         Up(best), Plain(bound), Up(best));
    case ConstraintKind::kMaxCostPerHour:
      return fmt::format("needs at least {} USD/h, maxCostPerHour is {}: raise it to {}", Up(best), Plain(bound),
                         Up(best));
    case ConstraintKind::kBudget:
      return fmt::format("costs at least {} USD in all, the budget is {}: raise it to {}", Up(best), Plain(bound),
                         Up(best));
    case ConstraintKind::kMaxUnits:
      return fmt::format("needs {} trainers in all, maxUnits is {}: raise it to {}", Up(best), Plain(bound), Up(best));
    case ConstraintKind::kMinUnits:
      return fmt::format("a stage can have at most {} trainers, minUnits is {}: lower it to {}", Down(best),
                         Plain(bound), Down(best));
    case ConstraintKind::kLimit:
      return fmt::format("needs {} units of {}, only {} may be used: raise the limit of {} to {}", Up(best), type,
                         Plain(bound), type, Up(best));
    case ConstraintKind::kMemory:
      return fmt::format(
          "needs units of {} with {} bytes of memory, they have {}: use larger units, or a type with more memory", type,
          Up(best), Plain(bound));
  }
  return "";
}

model::Reason ReasonOf(const model::PlanRequest& request, const Constraint& c, double best, bool resolves) {
  const double bound = BoundOf(request, c);
  const bool is_goal = c.kind == ConstraintKind::kMinThroughput || c.kind == ConstraintKind::kDeadline ||
                       c.kind == ConstraintKind::kMinUnits;
  model::Reason reason;
  reason.constraint = NameOf(c);
  if (c.type >= 0) reason.resource_type = request.resources[static_cast<size_t>(c.type)].name;
  reason.needed = is_goal ? bound : best;
  reason.available = is_goal ? best : bound;
  reason.message = Sentence(request, c, bound, best);
  if (!resolves) reason.message += " (other constraints still make the request infeasible)";
  return reason;
}

void AddUnprofiled(const Problem& problem, int t, std::vector<model::Reason>& out) {
  for (int layer = 0; layer < problem.layers(); ++layer) {
    if (problem.Profiled(layer, t)) continue;
    const std::string& name = problem.request().model.layers[static_cast<size_t>(layer)].name;
    out.push_back({"profile", problem.type(t).name, 0, 0,
                   fmt::format("layer {} ('{}') has no profile on {}: profile it on this type", layer, name,
                               problem.type(t).name)});
  }
}

}  // namespace

std::vector<model::Reason> WhyInfeasible(const Problem& problem, const Budget& budget) {
  const model::PlanRequest& request = problem.request();
  const std::vector<Constraint> all = ConstraintsOf(request);
  const std::vector<Constraint> conflict = SmallestConflict(request, all, budget);
  std::vector<model::Reason> out;
  for (const Constraint& c : conflict) {
    auto best = NearestFeasible(problem, request, c, budget);
    const bool resolves = best.has_value();
    if (!resolves) best = NearestFeasible(problem, LiftAllBut(request, all, conflict), c, budget);
    if (best) out.push_back(ReasonOf(request, c, *best, resolves));
  }
  return out;
}

std::vector<model::Reason> WhyNotSingleType(const Problem& problem, int t) {
  std::vector<model::Reason> out;
  AddUnprofiled(problem, t, out);
  return out.empty() ? WhyNotProvisioned(problem, WholeModelOn(problem, t)) : out;
}

std::vector<model::Reason> Unpriced(const model::PlanRequest& request) {
  std::vector<model::Reason> out;
  for (const model::Resource& r : request.resources) {
    if (r.price_per_unit_hour > 0) continue;
    const std::string message =
        r.offering ? fmt::format("resource type '{}' has no price: the catalog does not know the offering {}", r.name,
                                 r.offering->KeyString())
                   : fmt::format(
                         "resource type '{}' has no price: set pricePerUnitHour, or an offering that the "
                         "catalog knows",
                         r.name);
    out.push_back({"price", r.name, 0, 0, message});
  }
  return out;
}

}  // namespace medley::sched

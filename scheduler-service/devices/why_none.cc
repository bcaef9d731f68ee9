#include "scheduler-service/devices/why_none.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/reason.h"

namespace medley::sched {
namespace {

bool KeepsSome(const model::Constraints& constraints, const std::vector<Bound>& bounds, unsigned set,
               const Figures& plan) {
  for (size_t b = 0; b < bounds.size(); ++b) {
    if ((set >> b & 1) != 0 && !Keeps(constraints, bounds[b], plan)) return false;
  }
  return true;
}

// The best value of `bound` among the plans that keep the bounds of `set`.
std::optional<double> Nearest(const model::Constraints& constraints, const std::vector<Bound>& bounds, unsigned set,
                              Bound bound, const std::vector<Figures>& plans) {
  std::optional<double> best;
  for (const Figures& plan : plans) {
    if (!KeepsSome(constraints, bounds, set, plan)) continue;
    const double value = ValueOf(plan, bound);
    best = !best ? value : IsLeast(bound) ? std::max(*best, value) : std::min(*best, value);
  }
  return best;
}

// With few digits, rounded so that a bound of this value is kept.
std::string Rounded(double value, bool up) {
  const int digits = value >= 1000 ? 0 : value >= 10 ? 1 : 4;
  const double scale = std::pow(10, digits);
  const double whole = up ? std::ceil(value * scale * (1 - 1e-12)) : std::floor(value * scale * (1 + 1e-12));
  return base::FormatDecimal(whole / scale, digits);
}

std::string Sentence(Bound bound, double limit, double best) {
  const std::string given = base::FormatDecimal(limit, 6), needed = Rounded(best, !IsLeast(bound));
  switch (bound) {
    case Bound::kMinThroughput:
      return fmt::format(
          "the fastest plan that keeps the other bounds trains {} samples/s, minThroughput is {}: lower "
          "it to {}",
          needed, given, needed);
    case Bound::kDeadline:
      return fmt::format(
          "the fastest plan that keeps the other bounds takes {} s to the end, the deadline is in {} s: "
          "allow {} s",
          needed, given, needed);
    case Bound::kMaxCostPerHour:
      return fmt::format(
          "the devices of a plan that keeps the other bounds cost {} USD/h, maxCostPerHour is {}: raise "
          "it to {}",
          needed, given, needed);
    case Bound::kBudget:
      return fmt::format(
          "the cheapest plan that keeps the other bounds costs {} USD in all, the budget is {}: raise "
          "it to {}",
          needed, given, needed);
    case Bound::kMaxUnits:
      return fmt::format("a plan that keeps the other bounds needs {} units, maxUnits is {}: raise it to {}", needed,
                         given, needed);
    case Bound::kMinUnits:
      return fmt::format("a plan that keeps the other bounds has {} units in a stage, minUnits is {}: lower it to {}",
                         needed, given, needed);
  }
  return "";
}

// The smallest set of bounds that no plan keeps, as bits.
unsigned SmallestConflict(const model::Constraints& constraints, const std::vector<Bound>& bounds,
                          const std::vector<Figures>& plans) {
  const unsigned all = (1U << bounds.size()) - 1;
  unsigned smallest = all;
  for (unsigned set = 1; set <= all; ++set) {
    if (std::popcount(set) >= std::popcount(smallest)) continue;
    const bool kept =
        std::ranges::any_of(plans, [&](const Figures& plan) { return KeepsSome(constraints, bounds, set, plan); });
    if (!kept) smallest = set;
  }
  return smallest;
}

}  // namespace

std::vector<model::Reason> WhyNone(const model::Constraints& constraints, const std::vector<Figures>& plans) {
  const std::vector<Bound> bounds = BoundsOf(constraints);
  const unsigned conflict = SmallestConflict(constraints, bounds, plans);
  const unsigned all = (1U << bounds.size()) - 1;
  std::vector<model::Reason> reasons;
  for (size_t b = 0; b < bounds.size(); ++b) {
    const unsigned bit = 1U << b;
    if ((conflict & bit) == 0) continue;
    const Bound bound = bounds[b];
    auto best = Nearest(constraints, bounds, all & ~bit, bound, plans);
    const bool resolves = best.has_value();
    if (!resolves) best = Nearest(constraints, bounds, conflict & ~bit, bound, plans);
    if (!best) continue;
    const double limit = LimitOf(constraints, bound);
    model::Reason reason;
    reason.constraint = NameOf(bound);
    const bool is_goal = IsLeast(bound) || bound == Bound::kDeadline;
    reason.needed = is_goal ? limit : *best;
    reason.available = is_goal ? *best : limit;
    reason.message = Sentence(bound, limit, *best);
    if (!resolves) reason.message += " (other constraints still make the request infeasible)";
    reasons.push_back(std::move(reason));
  }
  return reasons;
}

std::vector<model::Reason> UnpricedDevices(const model::PlanRequest& request) {
  using enum model::Objective;
  const bool money = request.objective == kCost || request.objective == kCostPerHour ||
                     request.constraints.max_cost_per_hour > 0 || request.constraints.budget_usd > 0;
  std::vector<model::Reason> reasons;
  if (!money) return reasons;
  std::set<std::string> pools;
  for (const model::Device& device : request.cluster.devices) pools.insert(device.pool);
  for (const model::Resource& resource : request.resources) {
    if (!pools.contains(resource.name) || resource.price_per_unit_hour > 0) continue;
    reasons.push_back({"price", resource.name, 0, 0,
                       fmt::format("devices of pool '{}' have no price, and the request has a bound or an objective of "
                                   "money: set pricePerUnitHour, or an offering that the catalog knows",
                                   resource.name)});
  }
  return reasons;
}

}  // namespace medley::sched

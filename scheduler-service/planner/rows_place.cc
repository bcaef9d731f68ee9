#include "scheduler-service/planner/rows_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler-service/cost/problem.h"

namespace medley::sched {
namespace {

using model::Objective;
using model::PlanResult;

double SecondsOf(const PlanResult& result) {
  const double simulated = result.simulated ? result.simulated->throughput : 0;
  return simulated > 0 && result.plan->throughput > 0
             ? result.plan->execution_seconds * result.plan->throughput / simulated
             : result.plan->execution_seconds;
}

// What the objective minimises, as the judge that chose the plan sees it.
double ValueOf(const PlanResult& result, Objective objective) {
  if (objective == Objective::kCostPerHour) return result.plan->cost_per_hour;
  if (objective == Objective::kCost) return result.simulated ? result.simulated->cost_usd : result.plan->cost_usd;
  return SecondsOf(result);
}

// A plan that keeps the constraints in the simulator is better than one of which only the closed form says so.
bool IsBetterPlan(const PlanResult& one, const PlanResult& other, Objective objective) {
  if (!one.plan && !other.plan) return NeedsLess(one.reasons, other.reasons);
  if (!one.plan || !other.plan) return one.plan.has_value();
  const bool kept = one.judge == "simulator", other_kept = other.judge == "simulator";
  if (one.simulated && other.simulated && kept != other_kept) return kept;
  const double a = ValueOf(one, objective), b = ValueOf(other, objective);
  if (a < b * (1 - kSameCost)) return true;
  return a <= b * (1 + kSameCost) && one.plan->cost_per_hour < other.plan->cost_per_hour * (1 - kSameCost);
}

// The bound of both places: nothing unless each has one, or is known to have no plan.
std::optional<double> Smaller(const std::optional<double>& a, bool a_has_plan, bool a_known,
                              const std::optional<double>& b, bool b_has_plan, bool b_known) {
  if (!a_has_plan && a_known) return b;
  if (!b_has_plan && b_known) return a;
  if (!a || !b) return std::nullopt;
  return std::min(*a, *b);
}

double ValueByClosedForm(const PlanResult& result, Objective objective) {
  if (objective == Objective::kCost) return result.plan->cost_usd;
  return objective == Objective::kCostPerHour ? result.plan->cost_per_hour : result.plan->execution_seconds;
}

std::string Amount(const PlanResult& result, Objective objective) {
  const double value = ValueOf(result, objective);
  if (objective == Objective::kCost) return fmt::format("costs {:.6g} USD", value);
  if (objective == Objective::kCostPerHour) return fmt::format("costs {:.6g} USD/h", value);
  return fmt::format("takes {:.6g} s", value);
}

std::string NoteOf(const PlanResult& other, bool known, Objective objective, model::RowsPlace place) {
  const bool device = place == model::RowsPlace::kDevice;
  const char* const what = device ? "the GPU of one trainer has the embedding rows"
                                  : "the trainers keep the embedding rows, without parameter servers";
  const char* const with = device ? "with rows in the memory of hosts" : "with servers";
  if (other.plan) return fmt::format("{}: {} the best plan {}", what, with, Amount(other, objective));
  if (!known) return fmt::format("{}: no plan {} was found in the time", what, with);
  if (other.reasons.empty()) return fmt::format("{}: {} no plan meets the constraints", what, with);
  return fmt::format("{}: {} there is no plan, because it {}", what, with, other.reasons.front().message);
}

// Each comparison is with the better plan of both places.
void MergeAlternatives(std::vector<model::Alternative>& all, std::vector<model::Alternative> others) {
  for (size_t i = 0; i < std::min(all.size(), others.size()); ++i) {
    const bool cheaper =
        others[i].plan && (!all[i].plan || others[i].plan->cost_usd < all[i].plan->cost_usd * (1 - kSameCost));
    if (cheaper) all[i] = std::move(others[i]);
  }
}

}  // namespace

bool NeedsLess(const std::vector<model::Reason>& one, const std::vector<model::Reason>& other) {
  if (one.size() != 1 || other.size() != 1) return false;
  const model::Reason &a = one.front(), &b = other.front();
  if (a.constraint != b.constraint || a.resource_type != b.resource_type) return false;
  return a.needed * b.available < b.needed * a.available;
}

bool ChoosesRowsPlace(const model::PlanRequest& request) {
  if (request.rows != model::RowsPlace::kAny || request.on_devices()) return false;
  return std::ranges::any_of(request.model.layers, [](const model::Layer& layer) {
    return std::ranges::any_of(layer.profiles, [](const model::LayerProfile& p) { return p.server_seconds > 0; });
  });
}

bool MayUseDevices(const model::PlanRequest& request) {
  if (!ChoosesRowsPlace(request) || request.constraints.min_units > 1) return false;
  return std::ranges::any_of(request.resources, [&](const model::Resource& resource) {
    if (resource.device_memory_bytes <= 0) return false;
    return std::ranges::any_of(request.model.layers, [&](const model::Layer& layer) {
      return std::ranges::any_of(layer.profiles, [&](const model::LayerProfile& p) {
        return p.resource_type == resource.name && p.server_seconds > 0 && p.tables.has_value();
      });
    });
  });
}

model::PlanRequest ForRowsPlace(const model::PlanRequest& request, model::RowsPlace place, int parts) {
  model::PlanRequest one = request;
  one.rows = place;
  one.planner.time_budget_seconds /= parts;
  return one;
}

model::PlanResult BetterPlace(const model::PlanRequest& request, PlanResult first, bool first_known, PlanResult second,
                              bool second_known, model::RowsPlace place) {
  const Objective objective = request.objective;
  const bool other = IsBetterPlan(second, first, objective);
  const bool first_has = first.plan.has_value(), second_has = second.plan.has_value();
  const auto both = [&](const std::optional<double>& a, const std::optional<double>& b) {
    return Smaller(a, first_has, first_known, b, second_has, second_known);
  };
  const auto usd = both(first.lower_bound_usd, second.lower_bound_usd);
  const auto hourly = both(first.lower_bound_usd_per_hour, second.lower_bound_usd_per_hour);
  const auto seconds = both(first.lower_bound_seconds, second.lower_bound_seconds);
  const bool complete = first.complete && second.complete && first_known && second_known;
  const double planning = first.planning_seconds + second.planning_seconds;
  std::string note = other ? NoteOf(first, first_known, objective, place) : "";
  PlanResult result = other ? std::move(second) : std::move(first);
  MergeAlternatives(result.alternatives, std::move((other ? first : second).alternatives));
  result.complete = complete;
  result.planning_seconds = planning;
  if (!result.plan) return result;
  if (other) result.notes.push_back(std::move(note));
  result.lower_bound_usd = usd;
  result.lower_bound_usd_per_hour = hourly;
  result.lower_bound_seconds = seconds;
  const std::optional<double>& bound = objective == Objective::kCost          ? usd
                                       : objective == Objective::kCostPerHour ? hourly
                                                                              : seconds;
  const double value = ValueByClosedForm(result, objective);
  result.gap.reset();
  if (bound) result.gap = value > 0 ? std::max(0.0, (value - *bound) / value) : 0;
  if (!result.execution_plan) return result;
  result.execution_plan->provenance.lower_bound_usd = usd.value_or(0);
  result.execution_plan->provenance.gap = result.gap.value_or(1);
  return result;
}

}  // namespace medley::sched

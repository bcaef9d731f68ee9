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

std::string NoteOf(const PlanResult& servers, bool known, Objective objective) {
  constexpr char kWhat[] = "the trainers keep the embedding rows, without parameter servers";
  if (servers.plan) return fmt::format("{}: with servers the best plan {}", kWhat, Amount(servers, objective));
  if (!known) return fmt::format("{}: no plan with servers was found in the time", kWhat);
  if (servers.reasons.empty()) return fmt::format("{}: with servers no plan meets the constraints", kWhat);
  return fmt::format("{}: with servers there is no plan, because it {}", kWhat, servers.reasons.front().message);
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

model::PlanRequest ForRowsPlace(const model::PlanRequest& request, model::RowsPlace place) {
  model::PlanRequest one = request;
  one.rows = place;
  one.planner.time_budget_seconds /= 2;
  return one;
}

model::PlanResult BetterPlace(const model::PlanRequest& request, PlanResult servers, bool servers_known,
                              PlanResult trainers, bool trainers_known) {
  const Objective objective = request.objective;
  const bool inside = IsBetterPlan(trainers, servers, objective);
  const bool has_servers = servers.plan.has_value(), has_trainers = trainers.plan.has_value();
  const auto both = [&](const std::optional<double>& a, const std::optional<double>& b) {
    return Smaller(a, has_servers, servers_known, b, has_trainers, trainers_known);
  };
  const auto usd = both(servers.lower_bound_usd, trainers.lower_bound_usd);
  const auto hourly = both(servers.lower_bound_usd_per_hour, trainers.lower_bound_usd_per_hour);
  const auto seconds = both(servers.lower_bound_seconds, trainers.lower_bound_seconds);
  const bool complete = servers.complete && trainers.complete && servers_known && trainers_known;
  const double planning = servers.planning_seconds + trainers.planning_seconds;
  std::string note = inside ? NoteOf(servers, servers_known, objective) : "";
  PlanResult result = inside ? std::move(trainers) : std::move(servers);
  MergeAlternatives(result.alternatives, std::move((inside ? servers : trainers).alternatives));
  result.complete = complete;
  result.planning_seconds = planning;
  if (!result.plan) return result;
  if (inside) result.notes.push_back(std::move(note));
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

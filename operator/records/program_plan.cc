#include "operator/records/program_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "common/base/figure.h"
#include "common/model/execution_plan.h"
#include "common/model/plan_result.h"
#include "common/model/planning.h"
#include "common/model/profile.h"

namespace medley::ops {
namespace {

constexpr double kHour = 3600;
constexpr double kSpreadOfShape = 0.1;  // of what a profiler says of several units
constexpr int kEasyUnits = 4;           // whose processes one unit can well run
constexpr int kMostUnits = 8;

struct Choice {
  const model::Resource* resource = nullptr;
  int units = 0;
  double throughput = 0;  // samples/s
  double seconds = 0;     // to the end
  double usd_per_hour = 0;
  double lost = 0;  // part of the paid time
  double usd() const { return seconds / kHour * usd_per_hour * (1 + lost); }
};

double StepSeconds(const model::LayerProfile& profile, int units) {
  return profile.compute_seconds * (1 - profile.compute_parallel + profile.compute_parallel / units) +
         profile.sync_seconds * std::log2(units);
}

// On `units` of the pool; 0: it was not measured.
double StepSeconds(const model::PlanRequest& request, const std::string& pool, int units) {
  double seconds = 0;
  for (const model::Layer& layer : request.model.layers) {
    for (const model::LayerProfile& profile : layer.profiles) {
      if (profile.resource_type == pool) seconds += StepSeconds(profile, units);
    }
  }
  return seconds;
}

// What the choice lacks; nullopt: nothing.
std::optional<model::Reason> Lacks(const model::Constraints& bounds, const Choice& choice) {
  const std::string where = fmt::format(
      "{} of pool {}", choice.units == 1 ? "1 unit" : fmt::format("{} units", choice.units), choice.resource->name);
  const auto reason = [&](const char* constraint, double needed, double available, const std::string& message) {
    return model::Reason{constraint, choice.resource->name, needed, available, message};
  };
  if (bounds.min_throughput > choice.throughput) {
    return reason("minThroughput", bounds.min_throughput, choice.throughput,
                  fmt::format("minThroughput: {:.4g} samples/s are asked for, the program reaches {:.4g} on {}",
                              bounds.min_throughput, choice.throughput, where));
  }
  if (bounds.deadline_seconds > 0 && choice.seconds > bounds.deadline_seconds) {
    return reason("deadline", choice.seconds, bounds.deadline_seconds,
                  fmt::format("deadline: {:.0f} s are left, the program needs {:.0f} s on {}", bounds.deadline_seconds,
                              choice.seconds, where));
  }
  if (bounds.budget_usd > 0 && choice.usd() > bounds.budget_usd) {
    return reason("budgetUsd", choice.usd(), bounds.budget_usd,
                  fmt::format("budgetUsd: {:.4f} USD are left, the program costs {:.4f} USD on {}", bounds.budget_usd,
                              choice.usd(), where));
  }
  if (bounds.max_cost_per_hour > 0 && choice.usd_per_hour > bounds.max_cost_per_hour) {
    return reason("maxCostPerHour", choice.usd_per_hour, bounds.max_cost_per_hour,
                  fmt::format("maxUsdPerHour: {:.4f} USD/h are allowed, {} cost {:.4f}", bounds.max_cost_per_hour,
                              where, choice.usd_per_hour));
  }
  return std::nullopt;
}

// Smaller is better.
std::tuple<double, double, int> Rank(model::Objective objective, const Choice& choice) {
  // Sums of money that differ only by rounding are equal.
  const double usd = std::round(choice.usd() * 1e9) / 1e9;
  switch (objective) {
    case model::Objective::kCostPerHour:
      return {choice.usd_per_hour, usd, choice.units};
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      return {choice.seconds, usd, choice.units};
    case model::Objective::kCost:
      break;
  }
  return {usd, choice.units, choice.units};
}

std::vector<Choice> Choices(const model::PlanRequest& request, const std::vector<int>& legal_units,
                            const LostShares& lost) {
  const double batch = request.training.profile_batch_size;
  const double samples = request.training.TotalSamples();
  std::vector<Choice> choices;
  for (const model::Resource& resource : request.resources) {
    const auto share = lost.find(resource.name);
    int most = resource.limit;
    if (request.constraints.max_units > 0) most = std::min(most, request.constraints.max_units);
    for (int units = std::max(1, request.constraints.min_units); units <= most; ++units) {
      if (!legal_units.empty() && std::ranges::find(legal_units, units) == legal_units.end()) continue;
      const double step = StepSeconds(request, resource.name, units);
      if (step <= 0) continue;
      const double throughput = batch / step;
      choices.push_back({&resource, units, throughput, samples / throughput, units * resource.price_per_unit_hour,
                         share == lost.end() ? 0 : units * share->second});
    }
  }
  return choices;
}

model::ExecutionPlan ExecutionPlanOf(const model::PlanRequest& request, const Choice& choice) {
  model::ExecutionPlan plan;
  model::Stage& stage = plan.stages.emplace_back();
  const int layers = static_cast<int>(request.model.layers.size());
  stage.operations = {{0, layers}};
  stage.groups = {{choice.resource->name, choice.units, 1}};
  model::OperationSync& sync = stage.syncs.emplace_back();
  sync.operations = {{0, layers}};
  sync.sync.kind = choice.units > 1 ? model::SyncKind::kAllreduce : model::SyncKind::kNone;
  plan.estimate.throughput = choice.throughput;
  plan.estimate.usd_per_hour = choice.usd_per_hour;
  plan.estimate.usd_total = choice.usd();
  plan.estimate.seconds_total = choice.seconds;
  plan.provenance.planner = "program";
  plan.provenance.seed = request.planner.seed;
  plan.provenance.profile_id = request.profile_id;
  return plan;
}

// What is known of the pool: what the job measured, and on one unit, unless it did that, what the profiler measured.
// How the program scales according to the profiler counts little: it has not seen the network.
std::vector<model::SizeMeasure> MeasuresOf(const model::LayerProfile& profile, const MeasuredSizes& measured) {
  std::vector<model::SizeMeasure> all;
  if (const auto own = measured.find(profile.resource_type); own != measured.end()) all = own->second;
  double ratio = 1;  // of the units that the job has, to that of the profiler
  if (const auto one = std::ranges::find(all, 1, &model::SizeMeasure::units); one != all.end()) {
    ratio = one->seconds / profile.compute_seconds;
  } else {
    all.push_back({1, profile.compute_seconds, profile.spread});
  }
  if (profile.compute_parallel >= 1 && profile.sync_seconds <= 0) return all;  // only one unit was measured
  for (const int units : {2, 4}) {
    if (std::ranges::count(all, units, &model::SizeMeasure::units) > 0) continue;
    all.push_back({units, ratio * StepSeconds(profile, units), std::max(profile.spread, kSpreadOfShape)});
  }
  return all;
}

}  // namespace

void SetScaling(model::Model& model, const MeasuredSizes& measured) {
  if (measured.empty()) return;
  for (model::Layer& layer : model.layers) {
    std::map<std::string, model::ScalingCurve> curves;
    const model::ScalingCurve* widest = nullptr;
    for (const model::LayerProfile& profile : layer.profiles) {
      if (profile.compute_seconds <= 0) continue;
      const model::ScalingCurve& curve = curves[profile.resource_type] =
          model::FitScaling(MeasuresOf(profile, measured));
      if (widest == nullptr || curve.sizes > widest->sizes) widest = &curve;
    }
    for (model::LayerProfile& profile : layer.profiles) {
      const auto found = curves.find(profile.resource_type);
      if (found == curves.end()) continue;
      model::ScalingCurve curve = found->second;
      if (curve.sizes == 1 && widest->sizes > 1 && widest->Seconds(1) > 0) {
        // The one size may be any: where only the shape is known, both curves meet there.
        const int units = MeasuresOf(profile, measured).front().units;
        const double ratio = curve.Seconds(units) / widest->Seconds(units);
        curve = {widest->fixed * ratio, widest->divided * ratio, widest->doubling * ratio,
                 std::hypot(widest->spread, curve.spread), 1};
      }
      profile.compute_seconds = curve.fixed + curve.divided;
      profile.compute_parallel = profile.compute_seconds > 0 ? curve.divided / profile.compute_seconds : 0;
      profile.sync_seconds = curve.doubling;
      profile.spread = curve.spread;
    }
  }
}

std::string MeasuredWords(const model::Profile& profile, const std::string& pool) {
  const bool program = profile.model.layers.size() == 1 && profile.model.layers.front().kind == "PROGRAM";
  if (!program) return fmt::format("The layers were measured on pool {}.", pool);
  for (const model::LayerProfile& numbers : profile.model.layers.front().profiles) {
    if (numbers.resource_type != pool) continue;
    const std::string one = fmt::format("The program was measured on pool {}: {} s a step on one unit", pool,
                                        base::Figure(StepSeconds(numbers, 1)));
    if (numbers.compute_parallel >= 1 && numbers.sync_seconds <= 0) return one + ".";
    return fmt::format("{}, {} on two and {} on four as their processes compute on one.", one,
                       base::Figure(StepSeconds(numbers, 2)), base::Figure(StepSeconds(numbers, 4)));
  }
  return fmt::format("The program was measured on pool {}.", pool);
}

std::vector<int> SizesToMeasure(const std::vector<int>& legal_units, int least, int most) {
  std::vector<int> sizes;
  for (int units = std::max(2, least); units <= std::min(most, kMostUnits); ++units) {
    if (legal_units.empty() || std::ranges::find(legal_units, units) != legal_units.end()) sizes.push_back(units);
  }
  const auto easy = std::ranges::find_if(sizes.rbegin(), sizes.rend(), [](int units) { return units <= kEasyUnits; });
  if (sizes.empty()) return {};
  const int largest = easy == sizes.rend() ? sizes.front() : *easy;
  if (largest == sizes.front()) return {largest};
  return {sizes.front(), largest};
}

model::PlanResult PlanProgram(const model::PlanRequest& request, const std::vector<int>& legal_units,
                              const LostShares& lost) {
  model::PlanResult result;
  result.planner = "program";
  result.seed = request.planner.seed;
  result.resources = request.resources;
  const std::vector<Choice> choices = Choices(request, legal_units, lost);
  const Choice* best = nullptr;
  std::optional<model::Reason> nearest;
  double nearest_seconds = std::numeric_limits<double>::infinity();
  for (const Choice& choice : choices) {
    if (auto lacks = Lacks(request.constraints, choice)) {
      if (choice.seconds < nearest_seconds) {
        nearest_seconds = choice.seconds;
        nearest = std::move(lacks);
      }
      continue;
    }
    if (best == nullptr || Rank(request.objective, choice) < Rank(request.objective, *best)) best = &choice;
  }
  if (best == nullptr) {
    if (nearest) result.reasons.push_back(*std::move(nearest));
    const int least =
        legal_units.empty() ? std::max(1, request.constraints.min_units) : *std::ranges::min_element(legal_units);
    for (const model::Resource& resource : request.resources) {
      if (!choices.empty()) break;
      result.reasons.push_back({"limit", resource.name, static_cast<double>(least), static_cast<double>(resource.limit),
                                fmt::format("limit of {}: the program needs at least {} units, available {}",
                                            resource.name, least, resource.limit)});
    }
    return result;
  }
  model::ProvisionedPlan& plan = result.plan.emplace();
  model::ProvisionedStage& stage = plan.stages.emplace_back();
  stage.last_layer = static_cast<int>(request.model.layers.size()) - 1;
  stage.resource_type = best->resource->name;
  stage.units = best->units;
  stage.throughput = plan.throughput = best->throughput;
  stage.compute_seconds = request.training.profile_batch_size / best->throughput;
  plan.cost_per_hour = best->usd_per_hour;
  plan.execution_seconds = best->seconds;
  plan.cost_usd = best->usd();
  result.execution_plan = ExecutionPlanOf(request, *best);
  return result;
}

}  // namespace medley::ops

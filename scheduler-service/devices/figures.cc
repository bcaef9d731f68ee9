#include "scheduler-service/devices/figures.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "common/model/planning.h"
#include "scheduler-service/devices/problem.h"

namespace medley::sched {
namespace {

constexpr double kWithin = 1e-9;  // relative, of bounds
constexpr double kAlike = 1e-12;  // relative, of values of the objective
constexpr double kHour = 3600;    // seconds

std::string BrokenText(Bound bound, double value, double limit) {
  const auto text = [](double number) { return base::FormatDecimal(number, 6); };
  switch (bound) {
    case Bound::kMinThroughput:
      return fmt::format("it trains {} samples/s, and minThroughput is {}", text(value), text(limit));
    case Bound::kDeadline:
      return fmt::format("it takes {} s to the end, and the deadline is in {} s", text(value), text(limit));
    case Bound::kMaxCostPerHour:
      return fmt::format("its units cost {} USD/h, and maxCostPerHour is {}", text(value), text(limit));
    case Bound::kBudget:
      return fmt::format("it costs {} USD to the end, and the budget is {}", text(value), text(limit));
    case Bound::kMaxUnits:
      return fmt::format("it has {} units, and maxUnits is {}", text(value), text(limit));
    case Bound::kMinUnits:
      return fmt::format("a stage of it has {} units, and minUnits is {}", text(value), text(limit));
  }
  return "";
}

bool NeedsTime(Bound bound) {
  return bound == Bound::kMinThroughput || bound == Bound::kDeadline || bound == Bound::kBudget;
}

}  // namespace

Figures FiguresOf(const DeviceProblem& problem, const model::ExecutionPlan& plan, double seconds) {
  Figures figures;
  figures.seconds = seconds;
  figures.throughput = seconds > 0 ? problem.samples() / seconds : 0;
  bool priced = true;
  for (const model::Device& device : plan.devices) {
    const auto found = problem.index().find(device.id);
    const double price = found == problem.index().end() ? 0 : problem.UsdPerHour(found->second);
    priced = priced && price > 0;
    figures.usd_per_hour += price;
  }
  if (!priced) figures.usd_per_hour = 0;
  const double samples = problem.request().training.TotalSamples();
  if (figures.throughput > 0) figures.seconds_to_end = samples / figures.throughput;
  figures.usd = figures.seconds_to_end / kHour * figures.usd_per_hour;
  figures.units = static_cast<int>(plan.devices.size());
  figures.least_units = figures.units;
  for (const model::Placement& placement : plan.placements) {
    figures.least_units = std::min(figures.least_units, static_cast<int>(placement.replicas.size()));
  }
  return figures;
}

std::vector<Bound> BoundsOf(const model::Constraints& constraints) {
  std::vector<Bound> bounds;
  if (constraints.min_throughput > 0) bounds.push_back(Bound::kMinThroughput);
  if (constraints.deadline_seconds > 0) bounds.push_back(Bound::kDeadline);
  if (constraints.max_cost_per_hour > 0) bounds.push_back(Bound::kMaxCostPerHour);
  if (constraints.budget_usd > 0) bounds.push_back(Bound::kBudget);
  if (constraints.max_units > 0) bounds.push_back(Bound::kMaxUnits);
  if (constraints.min_units > 1) bounds.push_back(Bound::kMinUnits);
  return bounds;
}

double LimitOf(const model::Constraints& constraints, Bound bound) {
  switch (bound) {
    case Bound::kMinThroughput:
      return constraints.min_throughput;
    case Bound::kDeadline:
      return constraints.deadline_seconds;
    case Bound::kMaxCostPerHour:
      return constraints.max_cost_per_hour;
    case Bound::kBudget:
      return constraints.budget_usd;
    case Bound::kMaxUnits:
      return constraints.max_units;
    case Bound::kMinUnits:
      return constraints.min_units;
  }
  return 0;
}

double ValueOf(const Figures& figures, Bound bound) {
  switch (bound) {
    case Bound::kMinThroughput:
      return figures.throughput;
    case Bound::kDeadline:
      return figures.seconds_to_end;
    case Bound::kMaxCostPerHour:
      return figures.usd_per_hour;
    case Bound::kBudget:
      return figures.usd;
    case Bound::kMaxUnits:
      return figures.units;
    case Bound::kMinUnits:
      return figures.least_units;
  }
  return 0;
}

bool IsLeast(Bound bound) { return bound == Bound::kMinThroughput || bound == Bound::kMinUnits; }

bool Keeps(const model::Constraints& constraints, Bound bound, const Figures& figures) {
  const double value = ValueOf(figures, bound), limit = LimitOf(constraints, bound);
  return IsLeast(bound) ? value >= limit * (1 - kWithin) : value <= limit * (1 + kWithin);
}

bool KeepsAll(const model::Constraints& constraints, const Figures& figures) {
  return std::ranges::all_of(BoundsOf(constraints), [&](Bound bound) { return Keeps(constraints, bound, figures); });
}

std::string NameOf(Bound bound) {
  static constexpr std::array kNames = {"minThroughput", "deadline", "maxCostPerHour",
                                        "budget",        "maxUnits", "minUnits"};
  return kNames[static_cast<size_t>(bound)];
}

absl::Status CheckBounds(const model::Constraints& constraints, const DeviceProblem& problem,
                         const model::ExecutionPlan& plan, std::optional<double> seconds) {
  const std::vector<Bound> bounds = BoundsOf(constraints);
  if (bounds.empty()) return absl::OkStatus();
  const Figures figures = FiguresOf(problem, plan, seconds.value_or(0));
  for (const Bound bound : bounds) {
    if ((NeedsTime(bound) && !seconds) || Keeps(constraints, bound, figures)) continue;
    return base::FailedPrecondition("the plan breaks a bound: {}",
                                    BrokenText(bound, ValueOf(figures, bound), LimitOf(constraints, bound)));
  }
  return absl::OkStatus();
}

double ValueOf(const Figures& figures, model::Objective objective) {
  switch (objective) {
    case model::Objective::kCost:
      return figures.usd;
    case model::Objective::kCostPerHour:
      return figures.usd_per_hour;
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      return figures.seconds;
  }
  return figures.seconds;
}

bool IsBetter(const Figures& one, const Figures& other, model::Objective objective) {
  const double a = ValueOf(one, objective), b = ValueOf(other, objective);
  if (a < b * (1 - kAlike)) return true;
  if (a > b * (1 + kAlike)) return false;
  return std::tuple(one.usd_per_hour, one.seconds, one.units) <
         std::tuple(other.usd_per_hour, other.seconds, other.units);
}

}  // namespace medley::sched

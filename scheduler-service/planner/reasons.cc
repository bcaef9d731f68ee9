#include "scheduler-service/planner/reasons.h"

#include <cmath>
#include <functional>
#include <limits>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/schedule_dp.h"

namespace medley::sched {
namespace {

constexpr int kAmple = 1'000'000;

// A constraint that can be lifted.
struct Lifting {
  std::string constraint;     // whose violations count as reasons
  std::string resource_type;  // empty: any
  std::function<void(model::PlanRequest&)> lift;
};

std::vector<Lifting> Liftings(const model::PlanRequest& request) {
  std::vector<Lifting> out;
  const model::Constraints& c = request.constraints;
  if (c.budget_usd > 0) out.push_back({"budget", "", [](auto& r) { r.constraints.budget_usd = 0; }});
  if (c.max_cost_per_hour > 0) {
    out.push_back({"maxCostPerHour", "", [](auto& r) { r.constraints.max_cost_per_hour = 0; }});
  }
  if (c.max_units > 0) out.push_back({"units", "", [](auto& r) { r.constraints.max_units = 0; }});
  for (size_t t = 0; t < request.resources.size(); ++t) {
    const std::string& name = request.resources[t].name;
    out.push_back({"limit", name, [t](auto& r) { r.resources[t].limit = kAmple; }});
    if (request.resources[t].memory_bytes > 0) {
      out.push_back({"memory", name, [t](auto& r) { r.resources[t].memory_bytes = 0; }});
    }
  }
  return out;
}

std::optional<Provisioned> SolveLifted(model::PlanRequest request, const Budget& budget) {
  const auto problem = Problem::Compile(std::move(request));
  if (!problem.ok()) return std::nullopt;
  const auto solution = MakeExact()->Solve(*problem, 0, budget);
  return solution.ok() ? solution->best : std::nullopt;
}

void AddThroughputReason(const Problem& problem, const Budget& budget, std::vector<model::Reason>& out) {
  const model::Constraints& c = problem.request().constraints;
  if (c.min_throughput <= 0 && c.deadline_seconds <= 0) return;
  model::PlanRequest lifted = problem.request();
  lifted.constraints.min_throughput = 0;
  lifted.constraints.deadline_seconds = 0;
  if (!SolveLifted(lifted, budget)) return;
  const double best = HighestThroughput(problem, budget);
  if (best <= 0) return;
  const std::string reach = base::FormatDecimal(best, 1);
  if (c.min_throughput > 0 && best < c.min_throughput * (1 - kTolerance)) {
    out.push_back({"minThroughput", "", c.min_throughput, best,
                   fmt::format("at most {} samples/s can be reached within the other constraints, minThroughput asks "
                               "for {}: lower minThroughput to {}, or allow more units",
                               reach, base::FormatDecimal(c.min_throughput, 1),
                               base::FormatDecimal(std::floor(best), 0))});
  }
  const double seconds = problem.total_samples() / best;
  if (c.deadline_seconds > 0 && seconds > c.deadline_seconds * (1 + kTolerance)) {
    out.push_back({"deadline", "", c.deadline_seconds, seconds,
                   fmt::format("at {} samples/s, the most that the other constraints allow, it takes {} s and the "
                               "deadline is in {} s: allow {} s, or allow more units",
                               reach, base::FormatDecimal(seconds, 1), base::FormatDecimal(c.deadline_seconds, 1),
                               base::FormatDecimal(std::ceil(seconds), 0))});
  }
}

// The reasons when no single constraint is the culprit.
std::vector<model::Reason> AllTogether(const Problem& problem, const Budget& budget) {
  model::PlanRequest lifted = problem.request();
  for (const Lifting& lifting : Liftings(problem.request())) lifting.lift(lifted);
  if (const auto plan = SolveLifted(lifted, budget)) return Evaluate(problem, plan->stages).violations;
  const auto ample = Problem::Compile(lifted);
  if (!ample.ok()) return {};
  std::vector<model::Reason> out;
  AddThroughputReason(*ample, budget, out);
  return out;
}

void AddUnprofiled(const Problem& problem, int t, std::vector<model::Reason>& out) {
  for (int layer = 0; layer < problem.layers(); ++layer) {
    if (problem.Profiled(layer, t)) continue;
    const std::string& name = problem.request().model.layers[static_cast<size_t>(layer)].name;
    out.push_back({"profile", problem.type(t).name, 0, 0,
                   fmt::format("layer {} ('{}') has no profile on {}: profile it there", layer, name,
                               problem.type(t).name)});
  }
}

}  // namespace

double HighestThroughput(const Problem& problem, const Budget& budget) {
  ScheduleDp dp(problem, budget);
  constexpr double kAny = std::numeric_limits<double>::infinity();
  double low = dp.SlowestThroughput(), high = dp.FastestThroughput(), best = 0;
  if (!std::isfinite(low)) return 0;
  for (int step = 0; step < 200 && low <= high && !budget.Spent(); ++step) {
    const double x = step == 0 ? low : std::sqrt(low) * std::sqrt(high);
    dp.Prepare(x);
    const ScheduleDp::Answer answer = dp.Solve(kAny, false);
    if (answer.outcome != ScheduleDp::Outcome::kFound) {
      if (step == 0) return 0;
      high = std::nextafter(x, 0);
      continue;
    }
    // The plan may be faster than x; its servers may then be too many, so only x itself is proven.
    const Evaluation evaluation = Evaluate(problem, answer.stages);
    const bool within = evaluation.plan.cost_per_hour <= answer.hourly * (1 + 1e-12);
    best = within ? evaluation.plan.throughput : std::max(best, x);
    low = std::nextafter(best, kAny);
    if (low >= high * (1 - 1e-12)) break;
  }
  return best;
}

std::vector<model::Reason> WhyInfeasible(const Problem& problem, const Budget& budget) {
  std::vector<model::Reason> out;
  for (const Lifting& lifting : Liftings(problem.request())) {
    model::PlanRequest lifted = problem.request();
    lifting.lift(lifted);
    const auto plan = SolveLifted(std::move(lifted), budget);
    if (!plan) continue;
    for (model::Reason& reason : Evaluate(problem, plan->stages).violations) {
      const bool same_type = lifting.resource_type.empty() || lifting.resource_type == reason.resource_type;
      if (reason.constraint == lifting.constraint && same_type) out.push_back(std::move(reason));
    }
  }
  AddThroughputReason(problem, budget, out);
  if (out.empty()) out = AllTogether(problem, budget);
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
                   : fmt::format("resource type '{}' has no price: set pricePerUnitHour, or an offering that the "
                                 "catalog knows", r.name);
    out.push_back({"price", r.name, 0, 0, message});
  }
  return out;
}

}  // namespace medley::sched

#include "scheduler-service/planner/feasibility.h"

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/model/execution_plan.h"
#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/layer_bound.h"
#include "scheduler-service/planner/refining_search.h"

namespace medley::sched {
namespace {

constexpr int kProofRounds = 120;   // steps of the bound
constexpr int kBisectRounds = 40;   // of each bound of a bisection
constexpr double kBisected = 1e-3;  // relative

// Any plan will do.
class AnyPlan final : public Goal {
 public:
  explicit AnyPlan(const Problem& problem) : problem_(problem) {
    const double usd = problem.request().constraints.budget_usd;
    if (usd > 0) rate_ = usd * (1 + 2 * kTolerance) / problem.Cost(1, 1);
  }
  double Cutoff(double, double) const override { return found_ ? 0 : rate_; }
  void Offer(Provisioned plan) override { found_ = found_ || KeepsConstraints(problem_, plan.stages, plan.score); }
  bool found() const { return found_; }

 private:
  const Problem& problem_;
  bool found_ = false;
  double rate_ = kInfinity;
};

std::string Digits(double value) { return base::FormatDecimal(value, value >= 1000 ? 0 : value >= 10 ? 1 : 4); }

// True if plans of `x` samples/s need more units than the limits allow.
bool ExceedsQuotas(const Problem& problem, double x, int rounds, std::vector<int>* binding = nullptr) {
  LayerBound bound(problem, x, nullptr, false);
  bound.Improve(1, rounds);
  if (binding != nullptr) *binding = bound.BindingQuotas();
  return bound.rate() > 0;
}

double FastestLayer(const Problem& problem, int layer) {
  double fastest = 0;
  for (int t = 0; t < problem.types(); ++t) {
    if (!problem.Allowed(layer, layer, t) || problem.limit(t) < problem.min_units()) continue;
    fastest = std::max(fastest, problem.Throughput(problem.LayerTerms(layer, t), problem.limit(t)));
  }
  return fastest;
}

std::string LayerName(const Problem& problem, int layer) {
  return fmt::format("layer {} ('{}')", layer, problem.request().model.layers[static_cast<size_t>(layer)].name);
}

// The layers that fit on no type: for one of them, what it needs and the most that a type has.
std::vector<model::Reason> WhyNowhere(const Problem& problem) {
  for (int layer = 0; layer < problem.layers(); ++layer) {
    double needed = kInfinity, available = 0;
    bool profiled = false, fits = false, usable = false;
    for (int t = 0; t < problem.types(); ++t) {
      if (!problem.Profiled(layer, t)) continue;
      const bool here = problem.Allowed(layer, layer, t);
      profiled = true;
      fits = fits || here;
      usable = usable || (here && problem.limit(t) >= std::max(1, problem.min_units()));
      needed = std::min(needed, problem.LocalBytes(layer, layer, t));
      available = std::max(available, problem.type(t).memory_bytes);
    }
    if (!profiled) {
      return {
          {"profile", "", 0, 0, fmt::format("{} has no profile on any type: profile it", LayerName(problem, layer))}};
    }
    if (!fits) {
      return {{"memory", "", needed, available,
               fmt::format("{} needs {} bytes of memory on a unit, the largest unit has {}: use larger units",
                           LayerName(problem, layer), Digits(needed), Digits(available))}};
    }
    if (!usable) {
      return {{"limit", "", static_cast<double>(std::max(1, problem.min_units())), 0,
               fmt::format("too few units may be used of every type that {} fits on: raise a limit",
                           LayerName(problem, layer))}};
    }
  }
  return {};
}

model::Reason TooFast(const Problem& problem, double most, const std::string& because) {
  const model::Constraints& c = problem.request().constraints;
  const double needed = problem.RequiredThroughput();
  const bool deadline = needed > c.min_throughput;
  const double down = std::max(0.0, most);
  if (!deadline) {
    return {"minThroughput", "", c.min_throughput, down,
            fmt::format("no plan reaches more than {} samples/s, because {}; minThroughput is {}: lower it",
                        Digits(down), because, Digits(c.min_throughput))};
  }
  const double seconds = down > 0 ? problem.total_samples() / down : kInfinity;
  return {"deadline", "", c.deadline_seconds, seconds,
          fmt::format("every plan takes at least {} s, because {}; the deadline is in {} s: allow more time",
                      Digits(seconds), because, Digits(c.deadline_seconds))};
}

// Nearly the largest x with !ExceedsQuotas, from above; `high`: one that exceeds them.
double MostByQuotas(const Problem& problem, double high) {
  constexpr int kMost = 40;
  double low = 0;
  for (int i = 0; i < kMost && high - low > kBisected * high; ++i) {
    const double middle = low > 0 ? std::sqrt(low * high) : high * (1 - std::ldexp(0.02, std::min(i, 5)));
    (ExceedsQuotas(problem, middle, kBisectRounds) ? high : low) = middle;
  }
  return high;
}

std::vector<model::Reason> WhyQuotas(const Problem& problem) {
  const double required = problem.RequiredThroughput();
  std::vector<int> binding;
  if (!(required > 0) || !ExceedsQuotas(problem, required, kProofRounds, &binding)) return {};
  std::string names;
  std::vector<model::Reason> out;
  for (const int quota : binding) {
    const bool all = quota == problem.types();
    const std::string name = all ? "maxUnits" : fmt::format("the limit of {}", problem.type(quota).name);
    names += (names.empty() ? "" : ", ") + name;
  }
  out.push_back(TooFast(problem, MostByQuotas(problem, required), fmt::format("{} allow no more", names)));
  for (const int quota : binding) {
    if (quota == problem.types()) {
      const double most = problem.request().constraints.max_units;
      out.push_back({"maxUnits", "", most + 1, most,
                     fmt::format("more than the {} trainers of maxUnits are needed: raise it", Digits(most))});
      continue;
    }
    const model::Resource& type = problem.type(quota);
    out.push_back({"limit", type.name, type.limit + 1.0, static_cast<double>(type.limit),
                   fmt::format("more than {} units of {}, or of another type, are needed: raise its limit", type.limit,
                               type.name)});
  }
  return out;
}

std::vector<model::Reason> WhyMoney(const Problem& problem) {
  const model::Constraints& c = problem.request().constraints;
  const double required = problem.RequiredThroughput();
  LayerBound bound(problem, required);
  const double hourly = c.max_cost_per_hour > 0 ? c.max_cost_per_hour * (1 + 2 * kTolerance) : kInfinity;
  const double rate = c.budget_usd > 0 ? c.budget_usd * (1 + 2 * kTolerance) / problem.Cost(1, 1) : kInfinity;
  const double cutoff = std::min(rate, required > 0 ? hourly / required : kInfinity);
  if (cutoff == kInfinity) return {};
  bound.Improve(cutoff, kProofRounds);
  std::vector<model::Reason> out;
  if (bound.rate() > rate) {
    const double least = problem.Cost(bound.rate(), 1);
    out.push_back({"budget", "", least, c.budget_usd,
                   fmt::format("every plan costs at least {} USD in all, the budget is {}: raise it", Digits(least),
                               Digits(c.budget_usd))});
  }
  if (required > 0 && bound.rate() * required > hourly) {
    const double least = bound.rate() * required;
    out.push_back({"maxCostPerHour", "", least, c.max_cost_per_hour,
                   fmt::format("every plan that is fast enough costs at least {} USD/h, maxCostPerHour is {}: raise it",
                               Digits(least), Digits(c.max_cost_per_hour))});
  }
  return out;
}

}  // namespace

double MostThroughput(const Problem& problem) {
  double most = kInfinity;
  for (int layer = 0; layer < problem.layers(); ++layer) most = std::min(most, FastestLayer(problem, layer));
  most *= 1 + kTolerance;
  if (!(most > 0) || most == kInfinity || !ExceedsQuotas(problem, most, kProofRounds)) return most;
  return MostByQuotas(problem, most);
}

std::vector<model::Reason> WhyLayersDoNotFit(const Problem& problem) {
  if (auto nowhere = WhyNowhere(problem); !nowhere.empty()) return nowhere;
  const double required = problem.RequiredThroughput();
  for (int layer = 0; layer < problem.layers(); ++layer) {
    const double most = FastestLayer(problem, layer) * (1 + kTolerance);
    if (most >= required) continue;
    return {
        TooFast(problem, most,
                fmt::format("{} runs no faster on the units that may be used of any type", LayerName(problem, layer)))};
  }
  if (auto quotas = WhyQuotas(problem); !quotas.empty()) return quotas;
  return WhyMoney(problem);
}

Feasibility CheckFeasible(const Problem& problem, const Budget& budget) {
  if (auto reasons = WhyLayersDoNotFit(problem); !reasons.empty()) return {true, std::move(reasons)};
  if (HasManyStages(problem)) return {};
  AnyPlan any(problem);
  const Budget within = budget.QuietWithin(std::min(kFeasibilitySeconds, budget.RemainingSeconds() / 4));
  const double left = SearchPlans(problem, within, any, SearchOrder::kLeastBoundFirst, 1);
  return {left == kInfinity && !any.found(), {}};
}

}  // namespace medley::sched

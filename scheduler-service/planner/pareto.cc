#include "scheduler-service/planner/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/reasons.h"

namespace medley::sched {
namespace {

constexpr int kFrontSeedPoints = 64;

// Keeps the plans that no other plan dominates, that is, no other plan is both faster and cheaper. A plan is wanted if
// it is cheaper than all known plans that are at least as fast.
class Staircase final : public Goal {
 public:
  explicit Staircase(const Problem& problem) {
    const double budget = problem.request().constraints.budget_usd;
    if (budget <= 0) return;
    most_usd_ = budget * (1 + kTolerance);
    most_rate_ = most_usd_ / problem.total_samples() * 3600 * (1 + 1e-12);
  }

  double Cutoff(double, double high) const override {
    const auto faster = steps_.lower_bound(high);
    return faster == steps_.end() ? most_rate_ : std::min(most_rate_, RateOf(faster->second) * (1 - kSameCost));
  }

  void Offer(Provisioned plan) override {
    const double throughput = plan.score.throughput;
    if (plan.score.cost > most_usd_) return;
    const auto faster = steps_.lower_bound(throughput);
    if (faster != steps_.end() && RateOf(plan) >= RateOf(faster->second) * (1 - kSameCost)) return;
    const double rate = RateOf(plan);
    const auto at = steps_.insert_or_assign(throughput, std::move(plan)).first;
    // Remove slower plans that cost at least as much, except for rounding.
    auto first = at;
    while (first != steps_.begin() && RateOf(std::prev(first)->second) >= rate * (1 - kSameCost)) --first;
    steps_.erase(first, at);
  }

  std::vector<Provisioned> Plans() const {
    std::vector<Provisioned> plans;
    for (const auto& [throughput, plan] : steps_) plans.push_back(plan);
    return plans;
  }

 private:
  static double RateOf(const Provisioned& plan) { return plan.score.hourly / plan.score.throughput; }

  double most_usd_ = kInfinity;
  double most_rate_ = kInfinity;
  std::map<double, Provisioned> steps_;  // by throughput; rates ascend
};

absl::Status AddReasons(const Problem& problem, const Front& front, const base::Clock& clock, std::stop_token stop,
                        ParetoResult& result) {
  if (!front.complete) {
    return base::DeadlineExceeded("no plan was found within the time budget: raise planner.timeBudgetSeconds");
  }
  const Budget budget(clock, clock.Steady() + base::FromSeconds(kReasonSeconds), std::move(stop));
  result.reasons = WhyInfeasible(problem, budget);
  return absl::OkStatus();
}

}  // namespace

Front ExactFront(const Problem& problem, const Budget& budget) {
  Staircase staircase(problem);
  // Compute the cheapest plan first, so that the front has both ends even if the time runs out.
  if (const auto cheapest = MakeExact()->SolveStages(problem, 0, budget); cheapest.ok() && cheapest->best) {
    staircase.Offer(*cheapest->best);
  }
  const bool complete =
      SearchPlans(problem, budget, staircase, SearchOrder::kFastestFirst, kFrontSeedPoints) == kInfinity;
  return {staircase.Plans(), complete};
}

std::vector<size_t> Thinned(const std::vector<double>& throughputs, int max_points) {
  const size_t most = static_cast<size_t>(max_points == 0 ? kDefaultParetoPoints : max_points);
  const size_t count = throughputs.size();
  std::vector<size_t> kept;
  if (count == 0) return kept;
  if (count <= most) {
    for (size_t i = 0; i < count; ++i) kept.push_back(i);
    return kept;
  }
  kept.push_back(0);
  for (size_t n = 1; n < most; ++n) {
    // Take the plan nearest to the evenly spread throughput, and leave enough plans for the remaining points.
    const double wanted = throughputs.front() + (throughputs.back() - throughputs.front()) * static_cast<double>(n) /
                                                    static_cast<double>(most - 1);
    size_t best = kept.back() + 1;
    const size_t last = count - (most - n);
    while (best < last && std::abs(throughputs[best + 1] - wanted) <= std::abs(throughputs[best] - wanted)) ++best;
    kept.push_back(best);
  }
  kept.back() = most > 1 ? count - 1 : 0;
  return kept;
}

absl::StatusOr<ParetoResult> MakePareto(const model::PlanRequest& request, const PriceOrigin& origin, int max_points,
                                        const base::Clock& clock, std::stop_token stop, base::SteadyTime deadline) {
  const base::SteadyTime begin = clock.Steady();
  if (max_points < 0) return base::InvalidArgument("maxPoints: must not be negative, is {}", max_points);
  MEDLEY_RETURN_IF_ERROR(model::Validate(request));
  MEDLEY_RETURN_IF_ERROR(CheckGoalIsCost(request));
  ParetoResult result;
  result.catalog_revision = origin.catalog_revision;
  result.price_time = origin.price_time;
  result.resources = request.resources;
  result.reasons = Unpriced(request);
  if (!result.reasons.empty()) return result;

  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(request));
  MEDLEY_RETURN_IF_ERROR(StageGraph::CheckSize(problem));
  const double seconds = std::min(request.planner.time_budget_seconds, 3600.0);
  const Budget budget(clock, std::min(deadline, begin + base::FromSeconds(seconds)), stop);
  const Front front = ExactFront(problem, budget);
  result.complete = front.complete;
  if (front.plans.empty()) {
    MEDLEY_RETURN_IF_ERROR(AddReasons(problem, front, clock, stop, result));
  }
  std::vector<double> throughputs;
  for (const Provisioned& plan : front.plans) throughputs.push_back(plan.score.throughput);
  for (const size_t i : Thinned(throughputs, max_points)) {
    result.plans.push_back(Evaluate(problem, front.plans[i].stages).plan);
  }
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

}  // namespace medley::sched

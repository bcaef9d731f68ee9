#include "scheduler-service/planner/pareto.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/plan.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/reasons.h"
#include "scheduler-service/planner/rows_place.h"

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

// The whole front of a request whose prices are known.
absl::StatusOr<ParetoResult> WholeFront(const model::PlanRequest& request, const base::Clock& clock,
                                        std::stop_token stop, base::SteadyTime deadline) {
  MEDLEY_ASSIGN_OR_RETURN(const Problem problem, Problem::Compile(request));
  MEDLEY_RETURN_IF_ERROR(StageGraph::CheckSize(problem));
  const double seconds = std::min(request.planner.time_budget_seconds, 3600.0);
  const Budget budget(clock, std::min(deadline, clock.Steady() + base::FromSeconds(seconds)), stop);
  const Front front = ExactFront(problem, budget);
  ParetoResult result;
  result.complete = front.complete;
  if (front.plans.empty()) MEDLEY_RETURN_IF_ERROR(AddReasons(problem, front, clock, std::move(stop), result));
  for (const Provisioned& plan : front.plans) result.plans.push_back(Evaluate(problem, plan.stages).plan);
  return result;
}

// The plans that none of either front dominates. Where neither has a plan, the reasons that ask for less.
ParetoResult Merged(ParetoResult one, ParetoResult other) {
  ParetoResult merged;
  merged.complete = one.complete && other.complete;
  if (one.plans.empty() && other.plans.empty()) {
    merged.reasons = NeedsLess(other.reasons, one.reasons) ? std::move(other.reasons) : std::move(one.reasons);
    return merged;
  }
  std::vector<model::ProvisionedPlan> all = std::move(one.plans);
  std::ranges::move(other.plans, std::back_inserter(all));
  std::ranges::stable_sort(all, [](const model::ProvisionedPlan& a, const model::ProvisionedPlan& b) {
    return a.throughput != b.throughput ? a.throughput > b.throughput : a.cost_usd < b.cost_usd;
  });
  for (model::ProvisionedPlan& plan : all) {  // fastest first: a slower plan must be cheaper than all before it
    if (!merged.plans.empty() && plan.cost_usd >= merged.plans.back().cost_usd * (1 - kSameCost)) continue;
    merged.plans.push_back(std::move(plan));
  }
  std::ranges::reverse(merged.plans);
  return merged;
}

// With servers and with rows in the trainers.
absl::StatusOr<ParetoResult> FrontOnHosts(const model::PlanRequest& request, const base::Clock& clock,
                                          std::stop_token stop, base::SteadyTime deadline, int parts) {
  const base::SteadyTime now = clock.Steady();
  const base::SteadyTime half = deadline == base::SteadyTime::max() ? deadline : now + (deadline - now) / 2;
  auto servers = WholeFront(ForRowsPlace(request, model::RowsPlace::kServers, parts), clock, stop, half);
  if (!servers.ok() && !absl::IsDeadlineExceeded(servers.status())) return servers;
  auto trainers =
      WholeFront(ForRowsPlace(request, model::RowsPlace::kTrainers, parts), clock, std::move(stop), deadline);
  if (!trainers.ok() && !absl::IsDeadlineExceeded(trainers.status())) return trainers;
  if (!servers.ok() && (!trainers.ok() || trainers->plans.empty())) return servers;
  if (!trainers.ok() && servers->plans.empty()) return trainers;
  ParetoResult unknown;
  unknown.complete = false;
  return Merged(servers.ok() ? *std::move(servers) : unknown, trainers.ok() ? *std::move(trainers) : unknown);
}

// With the rows at each place that the request allows.
absl::StatusOr<ParetoResult> FrontForRows(const model::PlanRequest& request, const base::Clock& clock,
                                          std::stop_token stop, base::SteadyTime deadline) {
  if (!ChoosesRowsPlace(request)) return WholeFront(request, clock, std::move(stop), deadline);
  if (!MayUseDevices(request)) return FrontOnHosts(request, clock, std::move(stop), deadline, 2);
  constexpr int kPlaces = 3;
  const base::SteadyTime now = clock.Steady();
  const bool bounded = deadline != base::SteadyTime::max();
  auto hosts = FrontOnHosts(request, clock, stop, bounded ? now + (deadline - now) * (kPlaces - 1) / kPlaces : deadline,
                            kPlaces);
  if (!hosts.ok() && !absl::IsDeadlineExceeded(hosts.status())) return hosts;
  auto device = WholeFront(ForRowsPlace(request, model::RowsPlace::kDevice, kPlaces), clock, std::move(stop), deadline);
  if (!device.ok() && !absl::IsDeadlineExceeded(device.status())) return device;
  if (!device.ok() || device->plans.empty()) {  // the reasons of hosts say what users can change
    if (hosts.ok()) hosts->complete = hosts->complete && device.ok() && device->complete;
    return hosts;
  }
  ParetoResult unknown;
  unknown.complete = false;
  return Merged(hosts.ok() ? *std::move(hosts) : unknown, *std::move(device));
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

  MEDLEY_ASSIGN_OR_RETURN(ParetoResult front, FrontForRows(request, clock, std::move(stop), deadline));
  result.complete = front.complete;
  result.reasons = std::move(front.reasons);
  std::vector<double> throughputs;
  for (const model::ProvisionedPlan& plan : front.plans) throughputs.push_back(plan.throughput);
  for (const size_t i : Thinned(throughputs, max_points)) result.plans.push_back(std::move(front.plans[i]));
  result.planning_seconds = base::ToSeconds(clock.Steady() - begin);
  return result;
}

}  // namespace medley::sched

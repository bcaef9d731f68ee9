// Finds the global optimum over schedules and units, with a proof, by branch and bound over intervals of throughput
// (interval_search.h). At any time, the lowest bound of the open intervals is a proven lower bound of the cost. Of
// models with many possible stages it first searches some (refining_search.h).
#include <algorithm>
#include <limits>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/objectives.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/refining_search.h"

namespace medley::sched {
namespace {

constexpr int kSeedPoints = 8;
constexpr int kCutSeedPoints = 2;  // of a schedule whose types are given

// Keeps the cheapest plan that was offered.
class Cheapest final : public Goal {
 public:
  Cheapest(const Problem& problem, const Budget& limits) : problem_(problem), limits_(limits) {
    const double budget = problem.request().constraints.budget_usd;
    if (budget <= 0) return;
    most_usd_ = budget * (1 + kTolerance);
    // Slightly above the budget, because a plan that costs exactly the budget is allowed.
    rate_ = most_usd_ / problem.total_samples() * 3600 * (1 + 1e-12);
  }

  double Cutoff(double, double) const override { return rate_; }

  void Offer(Provisioned plan) override {
    if (plan.score.cost > most_usd_) return;
    if (best_) {
      const double ratio = plan.score.cost / best_->score.cost;
      const bool smaller = plan.score.hourly < best_->score.hourly * (1 - kTolerance);
      if (!(ratio < 1 - kSameCost || (ratio < 1 + kSameCost && smaller))) return;
    }
    best_ = std::move(plan);
    Report(limits_, problem_, *best_);
    // Exclude plans that are not cheaper, except for rounding.
    rate_ = std::min(rate_, best_->score.hourly / best_->score.throughput * (1 - kSameCost));
  }

  const Provisioned* Best() const override { return best_ ? &*best_ : nullptr; }

  Solution Answer(double open_rate) const {
    Solution solution;
    solution.complete = open_rate == kInfinity;
    solution.best = best_;
    // If the search is complete, the bound is the cost, up to kSameCost.
    const double bound = problem_.total_samples() / 3600 * open_rate;
    if (best_) solution.lower_bound = std::min(best_->score.cost, bound);
    return solution;
  }

 private:
  const Problem& problem_;
  const Budget& limits_;
  double most_usd_ = kInfinity;
  double rate_ = kInfinity;
  std::optional<Provisioned> best_;
};

class Exact final : public StagePlanner {
 public:
  Exact(std::string_view name, std::string_view description) : name_(name), description_(description) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  Takes takes() const override { return {.supply = Supply::kUnits, .objectives = true, .tables = true}; }
  bool proves_optimality() const override { return true; }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget& budget) const override {
    const model::Objective objective = problem.request().objective;
    if (objective != model::Objective::kCost) return SolveForObjective(problem, objective, budget);
    Cheapest cheapest(problem, budget);
    for (int t = 0; t < problem.types(); ++t) {
      if (auto single = SingleType(problem, t)) cheapest.Offer(std::move(*single));
    }
    Solution solution =
        cheapest.Answer(SearchAnySize(problem, budget, cheapest, SearchOrder::kLeastBoundFirst, kSeedPoints));
    NoteUnsearched(problem, solution);
    return solution;
  }

 private:
  const std::string_view name_, description_;
};

}  // namespace

std::optional<Provisioned> CheapestCuts(const Problem& problem, const std::vector<int>& schedule,
                                        const Budget& budget) {
  const Budget quiet = budget.Quiet();
  Cheapest cheapest(problem, quiet);
  if (auto uncut = ProvisionExact(problem, StagesOf(schedule))) cheapest.Offer(*std::move(uncut));
  return cheapest
      .Answer(SearchAnySize(problem, quiet, cheapest, SearchOrder::kLeastBoundFirst, kCutSeedPoints, &schedule))
      .best;
}

std::unique_ptr<StagePlanner> MakeExact() {
  return std::make_unique<Exact>("exact", "the global optimum over schedules and units, with a proof");
}

}  // namespace medley::sched

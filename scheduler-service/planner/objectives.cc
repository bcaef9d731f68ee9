#include "scheduler-service/planner/objectives.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/feasibility.h"
#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/refining_search.h"

namespace medley::sched {
namespace {

constexpr int kObjectiveSeedPoints = 8;

// Keeps the best plan for an objective, and says to the search which throughputs and rates may have a better one.
class BestFor final : public Goal {
 public:
  BestFor(const Problem& problem, model::Objective objective, const Budget& limits)
      : problem_(problem), objective_(objective), limits_(limits) {
    const double budget = problem.request().constraints.budget_usd;
    if (budget <= 0) return;
    most_usd_ = budget * (1 + kTolerance);
    most_rate_ = most_usd_ / problem.total_samples() * 3600 * (1 + 1e-12);
  }

  double Cutoff(double low, double high) const override {
    if (!best_) return most_rate_;
    const Score& score = best_->score;
    if (objective_ == model::Objective::kTime) {
      // A faster plan at any rate, and one as fast if it is cheaper.
      if (high > score.throughput) return most_rate_;
      if (high < score.throughput) return 0;
      return std::min(most_rate_, score.hourly / score.throughput * (1 - kSameCost));
    }
    // A plan of the rate r costs at least r * low per hour.
    return std::min(most_rate_, score.hourly * (1 - kSameCost) / low);
  }

  void Offer(Provisioned plan) override {
    if (plan.score.cost > most_usd_) return;
    if (best_ && !IsBetter(problem_, plan, *best_, objective_)) return;
    best_ = std::move(plan);
    Report(limits_, problem_, *best_);
  }

  const Provisioned* Best() const override { return best_ ? &*best_ : nullptr; }
  const std::optional<Provisioned>& best() const { return best_; }

 private:
  const Problem& problem_;
  const model::Objective objective_;
  const Budget& limits_;
  double most_usd_ = kInfinity;
  double most_rate_ = kInfinity;
  std::optional<Provisioned> best_;
};

// No plan is slower than one whose stages fill as those of the most stages do. 0: not known.
double LeastThroughput(const Problem& problem) {
  const double required = problem.RequiredThroughput();
  if (HasManyStages(problem)) return required;
  const Problem slowest = problem.ForStages(problem.layers());
  return std::max(required, StageGraph(slowest).SlowestThroughput());
}

}  // namespace

double ValueOf(const Problem& problem, const Provisioned& plan, model::Objective objective) {
  switch (objective) {
    case model::Objective::kCost:
      return plan.score.cost;
    case model::Objective::kCostPerHour:
      return plan.score.hourly;
    case model::Objective::kStepTime:
    case model::Objective::kTime:
      break;
  }
  return problem.total_samples() / plan.score.throughput;
}

bool IsBetter(const Problem& problem, const Provisioned& one, const Provisioned& other, model::Objective objective) {
  const double a = ValueOf(problem, one, objective), b = ValueOf(problem, other, objective);
  if (a < b * (1 - kSameCost)) return true;
  if (a > b * (1 + kSameCost)) return false;
  if (one.score.hourly != other.score.hourly) return one.score.hourly < other.score.hourly;
  return one.score.throughput > other.score.throughput;
}

std::optional<Provisioned> SingleTypeFor(const Problem& problem, int t, model::Objective objective) {
  if (objective == model::Objective::kCost) return SingleType(problem, t);
  std::optional<Provisioned> best;
  if (!problem.Allowed(0, problem.layers() - 1, t)) return best;
  const int most = problem.request().constraints.max_units;
  const int end = most > 0 ? std::min(most, problem.limit(t)) : problem.limit(t);
  std::vector<StageChoice> stages = WholeModelOn(problem, t);
  for (int units = std::max(1, problem.min_units()); units <= end; ++units) {
    stages[0].units = units;
    Provisioned plan{stages, ScoreOf(problem, stages)};
    if (!KeepsConstraints(problem, stages, plan.score)) continue;
    if (!best || IsBetter(problem, plan, *best, objective)) best = std::move(plan);
  }
  return best;
}

absl::StatusOr<Solution> SolveForObjective(const Problem& problem, model::Objective objective, const Budget& budget) {
  BestFor best(problem, objective, budget);
  for (int t = 0; t < problem.types(); ++t) {
    if (auto single = SingleTypeFor(problem, t, objective)) best.Offer(std::move(*single));
  }
  const bool fastest = objective == model::Objective::kTime;
  const SearchOrder order = fastest ? SearchOrder::kFastestFirst : SearchOrder::kLeastBoundFirst;
  const double open_rate = SearchAnySize(problem, budget, best, order, kObjectiveSeedPoints);
  Solution out;
  out.complete = open_rate == kInfinity;
  out.best = best.best();
  if (!out.best) return out;
  const double value = ValueOf(problem, *out.best, objective);
  if (out.complete) {
    out.lower_bound = value;
    return out;
  }
  if (fastest) {
    out.lower_bound = std::min(value, problem.total_samples() / MostThroughput(problem));
  } else {
    out.lower_bound = std::min(value, open_rate * LeastThroughput(problem));
  }
  NoteUnsearched(problem, out);
  return out;
}

}  // namespace medley::sched

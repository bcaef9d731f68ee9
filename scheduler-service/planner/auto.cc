// Runs `exact` first. If it does not prove the optimum in its share of the time budget, runs rl-lstm in the rest and
// returns the better plan of both.
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

constexpr double kExactShare = 0.7;  // share of the time budget

class Auto final : public StagePlanner {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view description() const override {
    return "exact if it proves the optimum in time, else the better plan of exact and rl-lstm";
  }
  Takes takes() const override { return exact_->takes(); }
  bool proves_optimality() const override { return true; }
  Options options() const override { return policy_->options(); }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    if (problem.request().objective != model::Objective::kCost) return exact_->SolveStages(problem, seed, budget);
    auto exact = exact_->SolveStages(problem, seed, budget.Share(kExactShare));
    if (absl::IsInvalidArgument(exact.status()))
      return policy_->SolveStages(problem, seed, budget);  // the problem is too large for exact
    if (!exact.ok()) return exact;
    if (exact->best) exact->planner = exact_->name();
    if (exact->complete) return exact;
    auto learned = policy_->SolveStages(problem, seed, budget);
    if (!learned.ok() || !learned->best) return exact;
    if (exact->best && exact->best->score.cost <= learned->best->score.cost) return exact;
    learned->lower_bound = exact->lower_bound;
    learned->complete = false;
    learned->planner = policy_->name();
    return learned;
  }

 private:
  const std::unique_ptr<StagePlanner> exact_ = MakeExact();
  const std::unique_ptr<StagePlanner> policy_ = MakeRlLstm();
};

}  // namespace

std::unique_ptr<StagePlanner> MakeAuto() { return std::make_unique<Auto>(); }

}  // namespace medley::sched

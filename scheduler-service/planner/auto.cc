// Runs `exact`, which is better at any time than the planners that only search. If it has found no plan in its share of
// the time budget, and the model has few possible stages, runs rl-lstm in the rest.
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/refining_search.h"

namespace medley::sched {
namespace {

constexpr double kExactShare = 0.7;  // of the time budget, in which exact must find a plan

class Auto final : public StagePlanner {
 public:
  std::string_view name() const override { return "auto"; }
  std::string_view description() const override { return "exact, and rl-lstm where exact finds no plan in time"; }
  Takes takes() const override { return exact_->takes(); }
  bool proves_optimality() const override { return true; }
  Options options() const override { return policy_->options(); }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    if (problem.request().objective != model::Objective::kCost) return exact_->SolveStages(problem, seed, budget);
    bool found = false;
    const Budget watched = budget.Heard([&](const model::ExecutionPlan& plan, const Figures& figures) {
      found = true;
      budget.Report(plan, figures);
    });
    const bool many = HasManyStages(problem);
    auto exact = exact_->SolveStages(problem, seed, many ? budget : watched.ShareUnless(kExactShare, found));
    if (!exact.ok()) return exact;
    if (exact->best) exact->planner = exact_->name();
    if (exact->complete || many || budget.Spent()) return exact;
    auto learned = policy_->SolveStages(problem, seed, budget);
    if (!learned.ok() || !learned->best) return exact;
    if (exact->best && exact->best->score.cost <= learned->best->score.cost) return exact;
    learned->lower_bound = exact->lower_bound;
    learned->complete = false;
    learned->planner = policy_->name();
    learned->notes.insert(learned->notes.begin(), exact->notes.begin(), exact->notes.end());
    return learned;
  }

 private:
  const std::unique_ptr<StagePlanner> exact_ = MakeExact();
  const std::unique_ptr<StagePlanner> policy_ = MakeRlLstm();
};

}  // namespace

std::unique_ptr<StagePlanner> MakeAuto() { return std::make_unique<Auto>(); }

}  // namespace medley::sched

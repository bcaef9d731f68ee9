// Evaluates all T (T + 1)^(L - 1) divisions into stages (T types, L layers), each with its optimal units: the reference
// for small models (HeterPS, section 6, where neighbouring stages differ in type).
#include <cmath>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

constexpr double kMostPlans = 1 << 25;

class BruteForce final : public StagePlanner {
 public:
  std::string_view name() const override { return "brute-force"; }
  std::string_view description() const override { return "evaluates every division into stages, for small models"; }
  bool proves_optimality() const override { return true; }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget& budget) const override {
    const double plans = problem.types() * std::pow(problem.types() + 1, problem.layers() - 1);
    if (plans > kMostPlans) {
      return base::InvalidArgument(
          "planner.name: planner brute-force handles at most {} divisions into stages, this request has {}*{}^{}",
          kMostPlans, problem.types(), problem.types() + 1, problem.layers() - 1);
    }
    Solution solution;
    std::vector<int> choices(static_cast<size_t>(problem.layers()), 0);
    int visited = 0;
    do {
      if (++visited % 64 == 0 && budget.Spent()) {
        solution.complete = false;
        return solution;
      }
      auto plan = ProvisionExact(problem, StagesIn(problem, choices));
      if (plan && (!solution.best || plan->score.cost < solution.best->score.cost)) {
        solution.best = std::move(plan);
        Report(budget, problem, *solution.best);
      }
    } while (Next(problem, choices));
    if (solution.best) solution.lower_bound = solution.best->score.cost;
    return solution;
  }

 private:
  // For each layer: the type of a stage that begins with it, or `types`: it belongs to the stage before.
  static std::vector<StageChoice> StagesIn(const Problem& problem, const std::vector<int>& choices) {
    std::vector<StageChoice> stages;
    for (int layer = 0; layer < problem.layers(); ++layer) {
      const int choice = choices[static_cast<size_t>(layer)];
      if (choice == problem.types()) {
        stages.back().last = layer;
      } else {
        stages.push_back({layer, layer, choice, 0});
      }
    }
    return stages;
  }

  // Increments the choices as a number in base `types + 1`, whose first digit is below `types`; false after the last.
  static bool Next(const Problem& problem, std::vector<int>& choices) {
    for (size_t i = choices.size(); i-- > 0;) {
      if (++choices[i] < problem.types() + (i > 0 ? 1 : 0)) return true;
      choices[i] = 0;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<StagePlanner> MakeBruteForce() { return std::make_unique<BruteForce>(); }

}  // namespace medley::sched

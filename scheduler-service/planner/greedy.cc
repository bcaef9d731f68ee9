// Greedy planner: puts every layer on the type where its work on one unit costs least. Then it repeatedly applies the
// change of a single layer that saves most, until none saves, and finds the best cuts of runs of one type. It proves
// nothing and may end in a local optimum.
#include <limits>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

class Greedy final : public StagePlanner {
 public:
  std::string_view name() const override { return "greedy"; }
  std::string_view description() const override { return "cheapest type layer by layer, then single-layer changes"; }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t, const Budget& budget) const override {
    Solution solution;
    std::vector<int> schedule = CheapestByLayer(problem);
    solution.best = ProvisionExact(problem, StagesOf(schedule));
    for (int t = 0; t < problem.types(); ++t) {
      auto single = SingleType(problem, t);
      if (!single || (solution.best && single->score.cost >= solution.best->score.cost)) continue;
      solution.best = std::move(single);
      schedule.assign(schedule.size(), t);
    }
    if (solution.best) Report(budget, problem, *solution.best);
    while (Improve(problem, budget, schedule, solution)) {
    }
    if (auto cut = CheapestCuts(problem, schedule, budget);
        cut && (!solution.best || cut->score.cost < solution.best->score.cost)) {
      solution.best = std::move(cut);
      Report(budget, problem, *solution.best);
    }
    solution.complete = !budget.Spent();
    return solution;
  }

 private:
  static std::vector<int> CheapestByLayer(const Problem& problem) {
    std::vector<int> schedule;
    for (int layer = 0; layer < problem.layers(); ++layer) {
      double least = std::numeric_limits<double>::infinity();
      int best = 0;
      for (int t = 0; t < problem.types(); ++t) {
        if (!problem.Allowed(layer, layer, t)) continue;
        const StageTerms terms = problem.Terms(layer, layer, t);
        const double usd = problem.price(t) * (terms.ComputeSeconds(1) + terms.CommSeconds(1)) +
                           problem.server_price() * problem.Servers(layer, layer, t).seconds;
        if (usd < least) {
          least = usd;
          best = t;
        }
      }
      schedule.push_back(best);
    }
    return schedule;
  }

  static bool Improve(const Problem& problem, const Budget& budget, std::vector<int>& schedule, Solution& solution) {
    size_t changed = schedule.size();
    int to = 0;
    for (size_t layer = 0; layer < schedule.size() && !budget.Spent(); ++layer) {
      const int from = schedule[layer];
      for (int t = 0; t < problem.types(); ++t) {
        if (t == from) continue;
        schedule[layer] = t;
        auto plan = ProvisionExact(problem, StagesOf(schedule));
        if (!plan || (solution.best && plan->score.cost >= solution.best->score.cost)) continue;
        solution.best = std::move(plan);
        changed = layer;
        to = t;
      }
      schedule[layer] = from;
    }
    if (changed == schedule.size()) return false;
    Report(budget, problem, *solution.best);
    schedule[changed] = to;
    return true;
  }
};

}  // namespace

std::unique_ptr<StagePlanner> MakeGreedy() { return std::make_unique<Greedy>(); }

}  // namespace medley::sched

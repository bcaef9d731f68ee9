// Evaluates all T^L schedules (T types, L layers), each with its optimal units: the reference for small models
// (HeterPS, section 6).
#include <cmath>

#include "common/base/status.h"
#include "scheduler-service/planner/planners.h"

namespace medley::sched {
namespace {

constexpr double kMostSchedules = 1 << 22;

class BruteForce final : public Planner {
 public:
  std::string_view name() const override { return "brute-force"; }
  std::string_view description() const override { return "evaluates every schedule, for small models"; }
  bool proves_optimality() const override { return true; }

  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t, const Budget& budget) const override {
    if (std::pow(problem.types(), problem.layers()) > kMostSchedules) {
      return base::InvalidArgument(
          "planner.name: planner brute-force handles at most {} schedules, this request has {}^{}", kMostSchedules,
          problem.types(), problem.layers());
    }
    Solution solution;
    std::vector<int> schedule(static_cast<size_t>(problem.layers()), 0);
    int visited = 0;
    do {
      if (++visited % 64 == 0 && budget.Spent()) {
        solution.complete = false;
        return solution;
      }
      auto plan = ProvisionExact(problem, StagesOf(schedule));
      if (plan && (!solution.best || plan->score.cost < solution.best->score.cost)) {
        solution.best = std::move(plan);
        budget.Report(*solution.best);
      }
    } while (Next(problem, schedule));
    if (solution.best) solution.lower_bound = solution.best->score.cost;
    return solution;
  }

 private:
  // Increments the schedule as a number in base `types`; false after the last schedule.
  static bool Next(const Problem& problem, std::vector<int>& schedule) {
    for (size_t i = schedule.size(); i-- > 0;) {
      if (++schedule[i] < problem.types()) return true;
      schedule[i] = 0;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<Planner> MakeBruteForce() { return std::make_unique<BruteForce>(); }

}  // namespace medley::sched

// Genetic search over schedules (a baseline of HeterPS, section 6). A chromosome is the list of the layers' types.
// Parents are chosen by tournaments of three, two-point crossover keeps runs of layers together, mutation changes
// single layers, and the best two individuals survive.
#include <algorithm>

#include "common/base/status.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/random_schedule.h"
#include "scheduler-service/planner/schedule_cost.h"

namespace medley::sched {
namespace {

constexpr int kMostPopulation = 10'000;
constexpr int kMostGenerations = 1'000'000;
constexpr size_t kElite = 2;
constexpr int kTournament = 3;
constexpr double kSwitches = 4;  // average number of type changes in an initial schedule
constexpr int64_t kMostGenes = 1 << 24;

struct Individual {
  std::vector<int> schedule;
  double cost = 0;
};

class Evolution {
 public:
  Evolution(const Problem& problem, const Budget& budget, const model::GeneticOptions& options, uint64_t seed)
      : budget_(budget),
        size_(static_cast<size_t>(options.population > 0 ? options.population : 100)),
        generations_(options.generations > 0 ? options.generations : 200),
        rate_(options.mutation_rate > 0 ? options.mutation_rate : 1.5 / problem.layers()),
        types_(TypesByLayer(problem)),
        cost_(problem, &budget),
        rng_(seed) {}

  Solution Run() {
    Solution solution;
    solution.complete = Begin();
    for (int g = 0; g < generations_ && solution.complete; ++g) solution.complete = Next();
    solution.best = cost_.best();
    return solution;
  }

 private:
  // Begin and Next return false if the budget is spent.
  bool Begin() {
    while (population_.size() < size_) {
      if (budget_.Spent()) return false;
      std::vector<int> schedule = RandomSchedule(types_, kSwitches, rng_);
      const double cost = cost_.Of(schedule);
      population_.push_back({std::move(schedule), cost});
    }
    return true;
  }

  bool Next() {
    const auto better = [](const Individual& a, const Individual& b) { return a.cost < b.cost; };
    std::stable_sort(population_.begin(), population_.end(), better);
    std::vector<Individual> next(population_.begin(),
                                 population_.begin() + static_cast<std::ptrdiff_t>(std::min(kElite, size_)));
    while (next.size() < size_) {
      if (budget_.Spent()) return false;
      Individual child;
      child.schedule = Cross(Parent().schedule, Parent().schedule);
      Mutate(types_, rate_, rng_, child.schedule);
      child.cost = cost_.Of(child.schedule);
      next.push_back(std::move(child));
    }
    population_ = std::move(next);
    return true;
  }

  const Individual& Parent() {
    size_t best = rng_.Below(size_);
    for (int i = 1; i < kTournament; ++i) {
      const size_t other = rng_.Below(size_);
      if (population_[other].cost < population_[best].cost) best = other;
    }
    return population_[best];
  }

  std::vector<int> Cross(const std::vector<int>& a, const std::vector<int>& b) {
    size_t from = rng_.Below(a.size() + 1), to = rng_.Below(a.size() + 1);
    if (from > to) std::swap(from, to);
    std::vector<int> child = a;
    for (size_t i = from; i < to; ++i) child[i] = b[i];
    return child;
  }

  const Budget& budget_;
  const size_t size_;
  const int generations_;
  const double rate_;
  const std::vector<std::vector<int>> types_;
  ScheduleCost cost_;
  base::Rng rng_;
  std::vector<Individual> population_;
};

class Genetic final : public Planner {
 public:
  std::string_view name() const override { return "genetic"; }
  std::string_view description() const override { return "tournaments, crossover and mutation of schedules"; }

  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    const model::GeneticOptions& options = problem.request().planner.genetic;
    if (options.population < 0 || options.population > kMostPopulation) {
      return base::InvalidArgument("planner.genetic.population: must be in [0, {}], is {}", kMostPopulation,
                                   options.population);
    }
    if (int64_t{options.population} * problem.layers() > kMostGenes) {
      return base::InvalidArgument("planner.genetic.population: population * layers must be at most {}", kMostGenes);
    }
    if (options.generations < 0 || options.generations > kMostGenerations) {
      return base::InvalidArgument("planner.genetic.generations: must be in [0, {}], is {}", kMostGenerations,
                                   options.generations);
    }
    if (!(options.mutation_rate >= 0 && options.mutation_rate <= 1)) {
      return base::InvalidArgument("planner.genetic.mutationRate: must be in [0, 1], is {}", options.mutation_rate);
    }
    return Evolution(problem, budget, options, seed).Run();
  }
};

}  // namespace

std::unique_ptr<Planner> MakeGenetic() { return std::make_unique<Genetic>(); }

}  // namespace medley::sched

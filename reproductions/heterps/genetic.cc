// Genetic search over schedules (a baseline of HeterPS, section 6). A chromosome is the list of the layers' types.
// Parents are chosen by tournaments of three, two-point crossover keeps runs of layers together, mutation changes
// single layers, and the best two individuals survive.
#include <algorithm>

#include "common/base/status.h"
#include "reproductions/heterps/heterps_planners.h"
#include "reproductions/heterps/random_schedule.h"
#include "scheduler-service/options/option_table.h"
#include "scheduler-service/planner/schedule_cost.h"

namespace medley::reproductions::heterps {
namespace {

using sched::Budget;
using sched::Options;
using sched::OptionTable;
using sched::Problem;
using sched::ScheduleCost;
using sched::Solution;
using sched::StagePlanner;

constexpr int kMostPopulation = 10'000;
constexpr int kMostGenerations = 1'000'000;
constexpr size_t kElite = 2;
constexpr int kTournament = 3;
constexpr double kFirstSwitches = 4;  // average number of type changes in an initial schedule
constexpr int64_t kMostGenes = 1 << 24;

struct GeneticOptions {
  int population = 100;
  int generations = 200;
  double mutation_rate = 0;  // 0: computed
};

const OptionTable<GeneticOptions>& GeneticTable() {
  static const auto table =
      OptionTable<GeneticOptions>()
          .Integer("population", &GeneticOptions::population, 1, kMostPopulation, "schedules of a generation")
          .Integer("generations", &GeneticOptions::generations, 1, kMostGenerations, "after the first one")
          .Number("mutationRate", &GeneticOptions::mutation_rate, 1e-6, 1, "probability that a layer changes its type",
                  "1.5 / layers");
  return table;
}

struct Individual {
  std::vector<int> schedule;
  double cost = 0;
};

class Evolution {
 public:
  Evolution(const Problem& problem, const Budget& budget, const GeneticOptions& options, uint64_t seed)
      : budget_(budget),
        size_(static_cast<size_t>(options.population)),
        generations_(options.generations),
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
      std::vector<int> schedule = RandomSchedule(types_, kFirstSwitches, rng_);
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

class Genetic final : public StagePlanner {
 public:
  std::string_view name() const override { return "genetic"; }
  std::string_view description() const override { return "tournaments, crossover and mutation of schedules"; }
  Options options() const override { return GeneticTable().options(); }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    MEDLEY_ASSIGN_OR_RETURN(const GeneticOptions options,
                            GeneticTable().Read(name(), problem.request().planner.options));
    if (int64_t{options.population} * problem.layers() > kMostGenes) {
      return base::InvalidArgument("planner.options.population: population * layers must be at most {}", kMostGenes);
    }
    return Evolution(problem, budget, options, seed).Run();
  }
};

}  // namespace

std::unique_ptr<sched::StagePlanner> MakeGenetic() { return std::make_unique<Genetic>(); }

}  // namespace medley::reproductions::heterps

// Whether a policy with shared weights (shared_policy.h) finds good plans of large questions with fewer judged
// candidates than equal draws from a prior, a genetic search and a local search:
//   shared_policy_bench [--train 120] [--epochs 12] [--questions 50] [--candidates 3000] [--exact 3]
// It trains on generated questions whose plans `exact` finds, then asks held-out ones of 100 to 400 layers on 16 to 64
// types. Draws of the policy and of both priors are followed by the same search: some layers of the best schedule are
// drawn again. Sharpness and penalty of the priors are the best of a grid on training questions.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/schedule_cost.h"
#include "tests/bench/shared_policy.h"
#include "tests/unit/scheduler-service/planner/large_questions.h"

namespace medley::sched {
namespace {

struct PolicyFlags {
  int train = 120;
  int epochs = 12;
  int questions = 50;
  int candidates = 3000;
  double exact_seconds = 3;
  double train_seconds = 0.6;
};

constexpr int kDraws = 64;        // before the search around the best of them
constexpr double kWithin = 1.01;  // of the best known cost
constexpr uint64_t kHeldOut = 1'000'000;

struct Asked {
  std::unique_ptr<Problem> problem;
  PairNumbers numbers;
  std::vector<int> schedule;  // of the best plan of `exact`; empty: none was found
  double usd = kInfinity;
  std::string name;
};

std::vector<int> ScheduleOf(const Problem& problem, const std::vector<StageChoice>& stages) {
  std::vector<int> schedule(static_cast<size_t>(problem.layers()));
  for (const StageChoice& s : stages) {
    for (int l = s.first; l <= s.last; ++l) schedule[static_cast<size_t>(l)] = s.type;
  }
  return schedule;
}

absl::StatusOr<Asked> Ask(uint64_t seed, const LargeOptions& options, double seconds) {
  MEDLEY_ASSIGN_OR_RETURN(Problem problem, Problem::Compile(LargeQuestion(seed, options)));
  Asked asked;
  asked.problem = std::make_unique<Problem>(std::move(problem));
  asked.name = fmt::format("{}x{} fill {:.2f}", options.layers, options.types, options.fill);
  asked.numbers = NumbersOf(*asked.problem);
  const ProcessorClock clock;
  MEDLEY_ASSIGN_OR_RETURN(
      const Solution exact,
      MakeExact()->SolveStages(*asked.problem, 1, Budget(clock, clock.Steady() + base::FromSeconds(seconds), {})));
  if (exact.best) {
    asked.schedule = ScheduleOf(*asked.problem, exact.best->stages);
    asked.usd = exact.best->score.cost;
  }
  return asked;
}

LargeOptions OptionsFor(base::Rng& rng, int least_layers, int most_layers, int least_types, int most_types) {
  const auto between = [&](int low, int high) { return low + static_cast<int>(rng.Below(uint64_t(high - low + 1))); };
  return {between(least_layers, most_layers), between(least_types, most_types), rng.Uniform(0.1, 0.5), 0};
}

// The costs of the cheapest feasible candidate after each judged one; infinite before the first.
class Course {
 public:
  Course(const Problem& problem, int most) : cost_(problem), most_(static_cast<size_t>(most)) {}
  bool Ended() const { return costs_.size() >= most_; }
  double Judge(const std::vector<int>& schedule) {
    const double value = cost_.Of(schedule);
    costs_.push_back(cost_.best() ? cost_.best()->score.cost : kInfinity);
    return value;
  }
  const std::vector<double>& costs() const { return costs_; }

 private:
  ScheduleCost cost_;
  const size_t most_;
  std::vector<double> costs_;
};

using Search = std::function<void(const Asked&, Course&, base::Rng&)>;

void SearchByChain(const ChainScores& scores, Course& course, base::Rng& rng) {
  const Chain exact(scores), soft(scores, 1.7), sharp(scores, 0.6);
  const Chain* const chains[] = {&exact, &soft, &sharp};
  std::vector<int> best = exact.MostProbable();
  double least = course.Judge(best);
  for (int i = 1; i < kDraws && !course.Ended(); ++i) {
    std::vector<int> schedule = chains[i % 3]->Draw(rng);
    const double cost = course.Judge(schedule);
    if (cost >= least) continue;
    least = cost;
    best = std::move(schedule);
  }
  while (!course.Ended()) {
    std::vector<int> schedule = best;
    const int length = 1 << rng.Below(7);
    const int first = static_cast<int>(rng.Below(static_cast<uint64_t>(scores.layers)));
    chains[rng.Below(3)]->DrawAgain(first, std::min(scores.layers, first + length) - 1, rng, schedule);
    if (schedule == best) {
      if (rng.Below(64) != 0) continue;  // not judged; but such draws must not go on for good
    }
    const double cost = course.Judge(schedule);
    if (cost > least) continue;
    least = cost;
    best = std::move(schedule);
  }
}

std::vector<std::vector<int>> TypesOf(const PairNumbers& numbers) {
  std::vector<std::vector<int>> types(static_cast<size_t>(numbers.layers));
  for (int l = 0; l < numbers.layers; ++l) {
    for (int t = 0; t < numbers.types; ++t) {
      if (numbers.allowed[static_cast<size_t>(l * numbers.types + t)] != 0) types[static_cast<size_t>(l)].push_back(t);
    }
  }
  return types;
}

int AnyOf(const std::vector<int>& types, base::Rng& rng) { return types[rng.Below(types.size())]; }

// Changes a run of layers to one type: a neighbour's, or any.
void Change(const std::vector<std::vector<int>>& types, base::Rng& rng, std::vector<int>& schedule) {
  const size_t first = rng.Below(schedule.size()),
               last = std::min(schedule.size(), first + (size_t{1} << rng.Below(6)));
  const bool neighbour = rng.Below(2) == 0;
  int to = AnyOf(types[first], rng);
  if (neighbour && first > 0) to = schedule[first - 1];
  if (neighbour && first == 0) to = schedule[std::min(last, schedule.size() - 1)];
  for (size_t l = first; l < last; ++l) {
    if (std::ranges::count(types[l], to) > 0) schedule[l] = to;
  }
}

void LocalSearch(const Asked& asked, Course& course, base::Rng& rng) {
  const auto types = TypesOf(asked.numbers);
  std::vector<int> best = Chain(GreedyScores(asked.numbers, 1, 0.01)).MostProbable();  // the cheapest by layer
  double least = course.Judge(best);
  while (!course.Ended()) {
    std::vector<int> schedule = best;
    Change(types, rng, schedule);
    if (schedule == best) continue;
    const double cost = course.Judge(schedule);
    if (cost > least) continue;
    least = cost;
    best = std::move(schedule);
  }
}

// As the planner `genetic`: tournaments of three, crossover at two points, the best two survive.
void GeneticSearch(const Asked& asked, Course& course, base::Rng& rng) {
  constexpr size_t kPopulation = 100;
  const auto types = TypesOf(asked.numbers);
  struct One {
    std::vector<int> schedule;
    double cost = 0;
  };
  std::vector<One> now;
  const double stay = 1 - 4.0 / asked.numbers.layers;
  while (now.size() < kPopulation && !course.Ended()) {
    One one;
    for (const auto& allowed : types) {
      const bool same =
          !one.schedule.empty() && rng.Uniform() < stay && std::ranges::count(allowed, one.schedule.back()) > 0;
      one.schedule.push_back(same ? one.schedule.back() : AnyOf(allowed, rng));
    }
    one.cost = course.Judge(one.schedule);
    now.push_back(std::move(one));
  }
  while (!course.Ended()) {
    std::ranges::stable_sort(now, {}, &One::cost);
    std::vector<One> next(now.begin(), now.begin() + 2);
    const auto parent = [&]() -> const One& {
      size_t best = rng.Below(now.size());
      for (int i = 0; i < 2; ++i) best = std::min(best, static_cast<size_t>(rng.Below(now.size())));
      return now[best];
    };
    while (next.size() < kPopulation && !course.Ended()) {
      One child{parent().schedule, 0};
      const One& other = parent();
      size_t from = rng.Below(child.schedule.size() + 1), to = rng.Below(child.schedule.size() + 1);
      if (from > to) std::swap(from, to);
      std::copy(other.schedule.begin() + static_cast<std::ptrdiff_t>(from),
                other.schedule.begin() + static_cast<std::ptrdiff_t>(to),
                child.schedule.begin() + static_cast<std::ptrdiff_t>(from));
      Change(types, rng, child.schedule);
      child.cost = course.Judge(child.schedule);
      next.push_back(std::move(child));
    }
    now = std::move(next);
  }
}

// The sharpness and penalty with which the draws of a prior are the likeliest to make the plans of training questions.
using Prior = ChainScores (*)(const PairNumbers&, double, double);
std::pair<double, double> BestOf(Prior prior, const std::vector<Asked>& questions) {
  std::pair<double, double> best{1, 1};
  double least = kInfinity;
  for (const double sharpness : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0}) {
    for (const double penalty : {0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0}) {
      double loss = 0;
      for (const Asked& q : questions) {
        loss += GradientOf(prior(q.numbers, sharpness, penalty), q.schedule).loss / q.numbers.layers;
      }
      if (loss >= least) continue;
      least = loss;
      best = {sharpness, penalty};
    }
  }
  std::printf("prior: sharpness %.1f, penalty %.1f, loss by layer %.4f\n", best.first, best.second,
              least / static_cast<double>(questions.size()));
  return best;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? kInfinity : values[values.size() / 2];
}

struct Row {
  std::vector<double> within;        // candidates until within 1 % of the best known; infinite: not within the limit
  std::vector<double> feasible;      // until the first plan
  std::vector<double> drawn, ended;  // cost over the best known after kDraws, and at the end
};

absl::Status Bench(const PolicyFlags& flags) {
  base::Rng rng(20261130);
  std::vector<Asked> training;
  for (uint64_t seed = 1; static_cast<int>(training.size()) < flags.train && seed < kHeldOut; ++seed) {
    MEDLEY_ASSIGN_OR_RETURN(Asked asked, Ask(seed, OptionsFor(rng, 40, 160, 8, 40), flags.train_seconds));
    if (!asked.schedule.empty()) training.push_back(std::move(asked));
  }
  std::printf("%zu training questions\n", training.size());
  base::Rng first(7);
  SharedPolicy policy(first);
  for (int epoch = 0; epoch < flags.epochs; ++epoch) {
    double loss = 0;
    const double rate = 0.003 * (1 - 0.9 * epoch / std::max(1, flags.epochs));
    for (const Asked& q : training) loss += policy.Learn(q.numbers, q.schedule, rate);
    std::printf("epoch %d: loss by layer %.4f\n", epoch, loss / static_cast<double>(training.size()));
    std::fflush(stdout);
  }
  const auto greedy = BestOf(GreedyScores, training), bound = BestOf(BoundScores, training);
  const std::vector<std::pair<std::string, Search>> searches = {
      {"policy", [&](const Asked& q, Course& c, base::Rng& r) { SearchByChain(policy.ScoresOf(q.numbers), c, r); }},
      {"greedy prior",
       [&](const Asked& q, Course& c, base::Rng& r) {
         SearchByChain(GreedyScores(q.numbers, greedy.first, greedy.second), c, r);
       }},
      {"bound prior", [&](const Asked& q, Course& c,
                          base::Rng& r) { SearchByChain(BoundScores(q.numbers, bound.first, bound.second), c, r); }},
      {"genetic", GeneticSearch},
      {"local search", LocalSearch}};
  std::map<std::string, Row> rows;
  int done = 0, best_by_exact = 0;
  for (uint64_t seed = kHeldOut; done < flags.questions; ++seed) {
    MEDLEY_ASSIGN_OR_RETURN(const Asked asked, Ask(seed, OptionsFor(rng, 100, 400, 16, 64), flags.exact_seconds));
    std::map<std::string, std::vector<double>> courses;
    double best = asked.usd;
    std::string by = "exact";
    for (const auto& [name, search] : searches) {
      Course course(*asked.problem, flags.candidates);
      base::Rng own(seed);
      search(asked, course, own);
      courses[name] = course.costs();
      if (courses[name].back() < best) {
        best = courses[name].back();
        by = name;
      }
    }
    if (best == kInfinity) continue;
    ++done;
    best_by_exact += by == "exact" ? 1 : 0;
    std::printf("%-20s exact %9.4g, best by %-12s", asked.name.c_str(), asked.usd, by.c_str());
    for (const auto& [name, search] : searches) {
      const auto& costs = courses[name];
      const auto until = [&](double limit) {
        const auto at = std::ranges::find_if(costs, [&](double c) { return c <= limit; });
        return at == costs.end() ? kInfinity : static_cast<double>(at - costs.begin()) + 1;
      };
      Row& row = rows[name];
      row.within.push_back(until(best * kWithin));
      row.feasible.push_back(until(1e300));
      row.drawn.push_back(costs[kDraws - 1] / best);
      row.ended.push_back(costs.back() / best);
      std::printf("  %s %.3f", name.c_str(), costs.back() / best);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("\n%d questions, the best plan is by exact in %d\n", done, best_by_exact);
  std::printf("%-14s %18s %18s %18s %22s %22s\n", "", "within 1 %", "median candidates", "with a plan",
              "cost after 64 draws", "cost at the end");
  for (const auto& [name, search] : searches) {
    const Row& row = rows[name];
    const auto count = [](const std::vector<double>& v) {
      return std::ranges::count_if(v, [](double x) { return x < kInfinity; });
    };
    std::printf("%-14s %12ld of %3d %18.0f %12ld of %3d %21.3fx %21.3fx\n", name.c_str(), count(row.within), done,
                Median(row.within), count(row.feasible), done, Median(row.drawn), Median(row.ended));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::sched

int main(int argc, char** argv) {
  CLI::App app("Judged candidates to good plans of large questions: a shared policy, priors, searches");
  medley::sched::PolicyFlags flags;
  app.add_option("--train", flags.train);
  app.add_option("--epochs", flags.epochs);
  app.add_option("--questions", flags.questions);
  app.add_option("--candidates", flags.candidates);
  app.add_option("--exact", flags.exact_seconds);
  app.add_option("--train-seconds", flags.train_seconds);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = medley::sched::Bench(flags);
  if (!status.ok()) std::fprintf(stderr, "shared_policy_bench: %s\n", medley::base::Message(status).c_str());
  return status.ok() ? 0 : 1;
}

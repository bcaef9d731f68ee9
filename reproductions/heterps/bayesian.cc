// Bayesian optimisation over schedules (a baseline of HeterPS, section 6). A Gaussian process models the logarithm of
// the cost. The next schedule to evaluate is the one with the largest expected improvement among random schedules and
// neighbours of the best ones.
#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "reproductions/heterps/gaussian_process.h"
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

constexpr int kMostEvaluations = 1000;  // the time for Cholesky grows with the cube of it
constexpr int kRefit = 25;              // evaluations between selections of hyperparameters
constexpr int kRandomCandidates = 96;
constexpr int kLocalCandidates = 96;
constexpr size_t kLeaders = 8;  // number of best schedules whose neighbours are candidates
constexpr double kSwitches = 3;

struct BayesianOptions {
  int evaluations = 300;
  int initial_samples = 0;  // 0: computed
};

const OptionTable<BayesianOptions>& BayesianTable() {
  static const auto table =
      OptionTable<BayesianOptions>()
          .Integer("evaluations", &BayesianOptions::evaluations, 1, kMostEvaluations,
                   "schedules whose cost is computed")
          .Integer("initialSamples", &BayesianOptions::initial_samples, 1, kMostEvaluations,
                   "how many of them are drawn at random, at most all", "the smaller of 40 and evaluations");
  return table;
}

class Optimisation {
 public:
  Optimisation(const Problem& problem, const Budget& budget, int initial, int evaluations, uint64_t seed)
      : budget_(budget),
        initial_(initial),
        evaluations_(evaluations),
        types_(TypesByLayer(problem)),
        cost_(problem, &budget),
        rng_(seed) {}

  Solution Run() {
    Solution solution;
    for (int i = 0; i < evaluations_; ++i) {
      if (budget_.Spent()) {
        solution.complete = false;
        break;
      }
      std::optional<std::vector<int>> next = i < initial_ ? NewRandom() : MostPromising(i);
      if (!next && i > 0 && i < initial_) next = MostPromising(i);
      if (!next) break;  // (nearly) every schedule has been evaluated
      Try(*next);
    }
    solution.best = cost_.best();
    return solution;
  }

 private:
  using Trial = std::pair<double, std::vector<int>>;

  void Try(const std::vector<int>& schedule) {
    const double value = cost_.Of(schedule);
    process_.Add(GaussianProcess::Point(schedule.begin(), schedule.end()), value);
    tried_.insert(schedule);
    trials_.emplace_back(value, schedule);
    std::stable_sort(trials_.begin(), trials_.end(), [](const Trial& a, const Trial& b) { return a.first < b.first; });
    if (trials_.size() > kLeaders) trials_.pop_back();
  }

  std::optional<std::vector<int>> NewRandom() {
    for (int attempt = 0; attempt < 50; ++attempt) {
      std::vector<int> schedule = RandomSchedule(types_, kSwitches, rng_);
      if (!tried_.contains(schedule)) return schedule;
    }
    return std::nullopt;
  }

  std::set<std::vector<int>> Candidates() {
    std::set<std::vector<int>> candidates;
    const auto add = [&](std::vector<int> schedule) {
      if (!tried_.contains(schedule)) candidates.insert(std::move(schedule));
    };
    for (int i = 0; i < kRandomCandidates; ++i) add(RandomSchedule(types_, kSwitches, rng_));
    for (int i = 0; i < kLocalCandidates; ++i) {
      std::vector<int> schedule = trials_[rng_.Below(trials_.size())].second;
      Mutate(types_, std::max(1.5 / static_cast<double>(schedule.size()), 0.02), rng_, schedule);
      add(std::move(schedule));
    }
    return candidates;
  }

  std::optional<std::vector<int>> MostPromising(int evaluation) {
    process_.Fit((evaluation - initial_) % kRefit == 0);
    const std::set<std::vector<int>> candidates = Candidates();
    if (candidates.empty()) return NewRandom();
    std::vector<GaussianProcess::Point> points;
    for (const std::vector<int>& schedule : candidates) points.emplace_back(schedule.begin(), schedule.end());
    const std::vector<Belief> beliefs = process_.Predict(points);
    const std::vector<int>* best = nullptr;
    double most = -1;
    size_t i = 0;
    for (const std::vector<int>& schedule : candidates) {
      const double improvement = ExpectedImprovement(beliefs[i++], trials_.front().first);
      if (improvement <= most) continue;
      most = improvement;
      best = &schedule;
    }
    return *best;
  }

  const Budget& budget_;
  const int initial_, evaluations_;
  const std::vector<std::vector<int>> types_;
  ScheduleCost cost_;
  base::Rng rng_;
  GaussianProcess process_;
  std::set<std::vector<int>> tried_;
  std::vector<Trial> trials_;  // the kLeaders best ones, best first
};

class Bayesian final : public StagePlanner {
 public:
  std::string_view name() const override { return "bayesian"; }
  std::string_view description() const override { return "Gaussian process over schedules, expected improvement"; }
  Options options() const override { return BayesianTable().options(); }

  absl::StatusOr<Solution> SolveStages(const Problem& problem, uint64_t seed, const Budget& budget) const override {
    MEDLEY_ASSIGN_OR_RETURN(const BayesianOptions options,
                            BayesianTable().Read(name(), problem.request().planner.options));
    const int initial = options.initial_samples > 0 ? options.initial_samples : std::min(40, options.evaluations);
    if (initial > options.evaluations) {
      return base::InvalidArgument("planner.options.initialSamples: must be at most evaluations ({}), is {}",
                                   options.evaluations, initial);
    }
    return Optimisation(problem, budget, initial, options.evaluations, seed).Run();
  }
};

}  // namespace

std::unique_ptr<sched::StagePlanner> MakeBayesian() { return std::make_unique<Bayesian>(); }

}  // namespace medley::reproductions::heterps

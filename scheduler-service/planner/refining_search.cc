#include "scheduler-service/planner/refining_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "scheduler-service/planner/layer_bound.h"

namespace medley::sched {
namespace {

constexpr int kBoundRounds = 60;          // subgradient steps
constexpr int64_t kFirstStages = 1'000;   // possible stages of the first, quick search
constexpr int64_t kStagesGrow = 4;        // factor from search to search, up to kFewPossibleStages
constexpr int kFirstPoints = 2;           // throughputs at which a search without a plan is seeded
constexpr int kRefinedPoints = 1;         // and one with a plan
constexpr int kMostFruitless = 6;         // searches without a better plan, until refining ends
constexpr int kMostWithoutPlan = 48;      // the same while there is no plan
constexpr double kSearchShare = 0.2;      // of the time that is left, for one search
constexpr double kMostSearchSeconds = 2;  // for one search
constexpr double kRefineShare = 0.6;      // of the budget, for all of them
constexpr double kBetter = 1 - 1e-7;
constexpr double kStagesPerSecond = 200'000;  // possible stages that a search may have for each second that is left
constexpr int kFruitless = 4;                 // numbers of stages without a better plan, after the first plan

size_t Position(int layer) { return static_cast<size_t>(layer); }

class AnySize {
 public:
  AnySize(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, const std::vector<int>* schedule)
      : problem_(problem), budget_(budget), goal_(goal), order_(order), schedule_(schedule) {}

  double Run(int points) {
    BoundLayers();
    if (choice_->rate() >= Cutoff()) return kInfinity;
    Refine(budget_.Share(kRefineShare));
    const double left = SearchAll(goal_.Best() != nullptr ? kRefinedPoints : points);
    if (too_many_) Refine(budget_);
    return left;
  }

 private:
  void BoundLayers() {
    choice_.emplace(problem_, Low(), schedule_);
    choice_->Improve(Cutoff(), kBoundRounds, &budget_);
  }
  // Only plans at least as fast are wanted: as fast as the best one, if the fastest is searched.
  double Low() const {
    const double required = problem_.RequiredThroughput();
    const Provisioned* best = order_ == SearchOrder::kFastestFirst ? goal_.Best() : nullptr;
    return best == nullptr ? required : std::max(required, best->score.throughput * (1 - kTolerance));
  }
  // The rate that wanted plans do not reach.
  double Cutoff() const {
    const double low = std::max(Low(), 1e-300);
    double everything = 0;
    for (int t = 0; t < problem_.types(); ++t) everything += problem_.price(t) * problem_.limit(t) * (1 + kTolerance);
    const double cutoff = std::min(goal_.Cutoff(low, kInfinity), everything / low);
    const double most = problem_.request().constraints.max_cost_per_hour;
    return most > 0 ? std::min(cutoff, most * (1 + 2 * kTolerance) / low) : cutoff;
  }

  // One search for `most_stages` (0: any), where stages end at `ends`, with the stages that the bound does not exclude.
  SearchedStages Search(const std::vector<char>* ends, int most_stages, int points, int64_t most,
                        const Budget& budget) {
    const Problem of = most_stages > 0 ? problem_.ForStages(most_stages) : problem_;
    LayerBound bound(of, Low(), schedule_);
    const double cutoff = Cutoff();
    bound.Improve(cutoff, kBoundRounds, &budget);
    if (bound.rate() >= cutoff) return {};
    const StageSubset subset{schedule_, ends, &bound, cutoff, &budget};
    too_many_ = StageGraph::Count(of, subset, most) > most;
    if (too_many_ || budget.Spent()) return {std::max(bound.rate(), choice_->rate()), false};
    SearchedStages searched = SearchWithStages(problem_, budget, goal_, order_, points, subset, most_stages);
    searched.left = std::max(searched.left, bound.rate());
    return searched;
  }

  double SearchAll(int points) {
    // What is searched must be visited some dozens of times in the time that is left.
    const double visited = std::min(budget_.RemainingSeconds() * kStagesPerSecond, double{kMostPossibleStages});
    const int64_t most = std::max(kFewPossibleStages, static_cast<int64_t>(visited));
    if (!problem_.fills()) return Search(nullptr, 0, points, most, budget_).left;
    double left = kInfinity;
    bool more = true;
    for (int stages = 1; stages <= problem_.layers() && more; ++stages) {
      const SearchedStages searched = Search(nullptr, stages, points, most, budget_);
      left = std::min(left, searched.left);
      more = searched.more;
    }
    return left;
  }

  // The value that a better plan changes; null and equal plans compare equal.
  bool IsBetter(const std::optional<Provisioned>& before) const {
    const Provisioned* now = goal_.Best();
    if (now == nullptr) return false;
    if (!before) return true;
    return now->score.hourly < before->score.hourly * kBetter || now->score.cost < before->score.cost * kBetter ||
           now->score.throughput > before->score.throughput / kBetter;
  }
  std::optional<Provisioned> Best() const {
    const Provisioned* best = goal_.Best();
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  void Refine(const Budget& budget) {
    int64_t most = kFirstStages;
    int fruitless = 0;
    const auto most_fruitless = [&] { return goal_.Best() != nullptr ? kMostFruitless : kMostWithoutPlan; };
    for (int round = 0; fruitless < most_fruitless() && !budget.Spent(); ++round) {
      const std::optional<Provisioned> before = Best();
      const std::vector<char> ends = EndsFor(most, round);
      const double seconds = std::min(budget.RemainingSeconds() * kSearchShare, kMostSearchSeconds);
      SearchAmong(ends, round, budget.QuietWithin(seconds));
      const bool better = IsBetter(before);
      if (better && FewAreLeft()) return;
      if (most < kFewPossibleStages) {
        most = std::min(most * kStagesGrow, kFewPossibleStages);
      } else {
        fruitless = better ? 0 : fruitless + 1;
      }
    }
  }

  // True if the search of all stages is as quick as another one among chosen layers.
  bool FewAreLeft() {
    BoundLayers();
    const StageSubset subset{schedule_, nullptr, &*choice_, Cutoff(), &budget_};
    return StageGraph::Count(problem_, subset, kFewPossibleStages) <= kFewPossibleStages;
  }

  void SearchAmong(const std::vector<char>& ends, int round, const Budget& budget) {
    const Provisioned* best = goal_.Best();
    if (!problem_.fills()) {
      Search(&ends, 0, best == nullptr ? kFirstPoints : kRefinedPoints, kMostPossibleStages, budget);
      return;
    }
    if (best != nullptr) {
      // Plans with fewer stages are among those with more, a little too expensive.
      const int stages = static_cast<int>(best->stages.size());
      for (const int more : {0, 1 + round % 3}) {
        Search(&ends, std::min(stages + more, problem_.layers()), kRefinedPoints, kMostPossibleStages, budget);
      }
      return;
    }
    int fruitless = 0;
    for (int stages = 1; stages <= problem_.layers() && fruitless < kFruitless && !budget.Spent(); ++stages) {
      const std::optional<Provisioned> before = Best();
      if (!Search(&ends, stages, kFirstPoints, kMostPossibleStages, budget).more) break;
      fruitless = IsBetter(before) || !before ? 0 : fruitless + 1;
    }
  }

  // As many places as make about `most` possible stages.
  std::vector<char> EndsFor(int64_t most, int round) {
    Measure(round);
    const Problem of =
        goal_.Best() == nullptr ? problem_ : problem_.ForStages(static_cast<int>(goal_.Best()->stages.size()));
    LayerBound bound(of, Low(), schedule_);
    const double cutoff = Cutoff();
    bound.Improve(cutoff, kBoundRounds / 2, &budget_);
    size_t low = 1, high = Position(problem_.layers());
    std::vector<char> ends = Ends(low, round);
    while (high - low > low / 8 && !budget_.Spent()) {  // the most places within `most`, nearly
      const size_t middle = std::max(low + 1, low + (high - low) / (low < 16 && high > 64 ? 8 : 2));
      std::vector<char> tried = Ends(middle, round);
      const StageSubset subset{schedule_, &tried, &bound, cutoff, &budget_};
      if (StageGraph::Count(of, subset, most) > most) {
        high = middle - 1;
      } else {
        low = middle;
        ends = std::move(tried);
      }
    }
    return ends;
  }

  // How much a cut before each layer saves by single layers, in windows around it, and how much of the work, of the
  // parameters and of the layers is before each layer.
  void Measure(int round) {
    const size_t layers = Position(problem_.layers()), types = static_cast<size_t>(problem_.types());
    std::vector<double> sums((layers + 1) * types, 0);
    std::vector<double> rates(layers, 0), bytes(layers, 0);
    double rate = 0, byte = 0;
    for (size_t l = 0; l < layers; ++l) {
      rates[l] = choice_->LeastRateOf(static_cast<int>(l));
      if (!(rates[l] < kInfinity)) rates[l] = 0;
      rate += rates[l];
      bytes[l] = problem_.request().model.layers[l].weight_bytes;
      byte += bytes[l];
    }
    for (size_t l = 0; l < layers; ++l) {
      for (size_t t = 0; t < types; ++t) {
        const double more = choice_->Excess(static_cast<int>(l), static_cast<int>(t));
        sums[(l + 1) * types + t] = sums[l * types + t] + std::min(more, rate);
      }
    }
    const size_t window = std::max<size_t>(1, layers / (round % 2 == 0 ? 32 : 96));
    gains_.assign(layers + 1, 0);
    for (size_t l = 1; l < layers; ++l) {
      const size_t from = l > window ? l - window : 0, to = std::min(layers, l + window);
      double both = kInfinity, before = kInfinity, after = kInfinity;
      for (size_t t = 0; t < types; ++t) {
        const double a = sums[l * types + t] - sums[from * types + t], b = sums[to * types + t] - sums[l * types + t];
        both = std::min(both, a + b);
        before = std::min(before, a);
        after = std::min(after, b);
      }
      gains_[l] = both - before - after;
    }
    passed_.assign(layers + 1, 0);
    for (size_t l = 0; l < layers; ++l) {
      const double part =
          (rate > 0 ? rates[l] / rate : 0) + (byte > 0 ? bytes[l] / byte : 0) + 1.0 / static_cast<double>(layers);
      passed_[l + 1] = passed_[l] + part;
    }
    by_gain_.resize(layers - 1);
    std::iota(by_gain_.begin(), by_gain_.end(), 1);
    std::ranges::stable_sort(by_gain_, std::greater<>(), [&](int l) { return gains_[Position(l)]; });
  }

  // The ends of the best plan's stages; then, of `places`, a half around them, and of the others a half where a cut
  // gains most and a half with equal parts between them.
  std::vector<char> Ends(size_t places, int round) const {
    const int layers = problem_.layers();
    std::vector<char> ends(Position(layers) + 1, 0);
    size_t left = places;
    const auto add = [&](int layer) {
      if (layer <= 0 || layer >= layers || ends[Position(layer)] != 0) return;
      ends[Position(layer)] = 1;
      if (left > 0) --left;
    };
    ends.front() = ends.back() = 1;
    if (const Provisioned* best = goal_.Best(); best != nullptr) {
      for (const StageChoice& s : best->stages) add(s.first);
      const int step = 1 + round % 3;
      const size_t others = left / (round % 2 == 0 ? 2 : 4);
      for (int away = 1; away < layers && left > others; away += away < 8 ? step : step * (away / 4)) {
        for (const StageChoice& s : best->stages) {
          if (s.first == 0 || left <= others) continue;
          add(s.first + away);
          add(s.first - away);
        }
      }
    }
    const size_t spread = left / 2;
    for (size_t i = 0; i < by_gain_.size() && left > spread; ++i) {
      if (gains_[Position(by_gain_[i])] <= 0) break;
      add(by_gain_[i]);
    }
    const double phase = static_cast<double>(round % 4) / 4, parts = static_cast<double>(left + 1);
    for (size_t i = 0, count = left; i < count; ++i) {
      const double wanted = passed_.back() * (static_cast<double>(i) + 1 - phase) / parts;
      add(static_cast<int>(std::ranges::lower_bound(passed_, wanted) - passed_.begin()));
    }
    return ends;
  }

  const Problem& problem_;
  const Budget& budget_;
  Goal& goal_;
  const SearchOrder order_;
  const std::vector<int>* const schedule_;
  bool too_many_ = false;             // stages, for the last search
  std::optional<LayerBound> choice_;  // of the problem
  std::vector<double> gains_;         // by layer: of a stage that begins there
  std::vector<double> passed_;        // by layer
  std::vector<int> by_gain_;
};

}  // namespace

bool HasManyStages(const Problem& problem) {
  return StageGraph::Count(problem, {}, kFewPossibleStages) > kFewPossibleStages;
}

void NoteUnsearched(const Problem& problem, Solution& solution) {
  if (solution.complete || !HasManyStages(problem)) return;
  solution.notes.push_back(fmt::format(
      "{} layers on {} resource types are too many to compare all plans in the time: stages were searched that begin "
      "and end at chosen layers, and around those of the best plan; {}",
      problem.layers(), problem.types(),
      solution.lower_bound.value_or(0) > 0 ? "the lower bound holds for all plans" : "no lower bound is proven"));
}

double SearchAnySize(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                     const std::vector<int>* schedule) {
  const StageSubset all{.schedule = schedule};
  if (StageGraph::Count(problem, all, kFewPossibleStages) <= kFewPossibleStages) {
    return SearchPlans(problem, budget, goal, order, points, all);
  }
  return AnySize(problem, budget, goal, order, schedule).Run(points);
}

}  // namespace medley::sched

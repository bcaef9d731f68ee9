#include "scheduler-service/planner/interval_search.h"
#include "scheduler-service/cost/evaluate.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/layer_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace medley::sched {
namespace {

constexpr int64_t kFewBreakpoints = 32;
constexpr double kNarrow = 0.25;
constexpr int kRounds = 12;      // subgradient steps for an interval
constexpr int kSeedRounds = 40;  // subgradient steps for a seed point, to get a good plan
constexpr int kBeamWidth = 24, kWideBeam = 256;

double After(double x) { return std::nextafter(x, kInfinity); }

}  // namespace

IntervalSearch::IntervalSearch(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order,
                               const StageSubset& subset, int most_stages)
    : problem_(most_stages > 0 ? problem.ForStages(most_stages) : problem),
      most_stages_(most_stages),
      budget_(budget),
      goal_(goal),
      order_(order),
      dp_(problem_, budget, subset, most_stages),
      relaxation_(dp_.graph(), most_stages),
      low_(std::max(problem.RequiredThroughput(), dp_.SlowestThroughput())),
      high_(dp_.FastestThroughput()),
      first_(static_cast<size_t>(problem.types()) + 2, 0),
      open_(Later{order}) {
  if (subset.bound != nullptr) std::ranges::copy(subset.bound->multipliers(), first_.begin());
  for (int t = 0; t < problem.types(); ++t) everything_ += problem.price(t) * problem.limit(t) * (1 + kTolerance);
}

bool IntervalSearch::Later::operator()(const Node& a, const Node& b) const {
  if (order == SearchOrder::kFastestFirst) return a.high != b.high ? a.high < b.high : a.bound > b.bound;
  return a.bound != b.bound ? a.bound > b.bound : a.low > b.low;
}

double IntervalSearch::Cutoff(double low, double high) const {
  // No plan costs more per hour than all units that the limits allow. A bound above that means infeasible.
  const double wanted = std::min(goal_.Cutoff(low, high), everything_ / low);
  const double most = problem_.request().constraints.max_cost_per_hour;
  // Slightly above maxCostPerHour, because a plan that costs exactly that is allowed.
  return most > 0 ? std::min(wanted, After(most * (1 + kTolerance) / low)) : wanted;
}

void IntervalSearch::OfferIfFeasible(const std::vector<StageChoice>& stages) {
  const Score score = ScoreOf(problem_, stages);
  const model::Constraints& c = problem_.request().constraints;
  if (score.throughput < problem_.RequiredThroughput()) return;
  if (c.max_cost_per_hour > 0 && score.hourly > c.max_cost_per_hour * (1 + kTolerance)) return;
  const std::vector<int> used = UnitsByType(problem_, stages, score.server_units);
  for (int t = 0; t < problem_.types(); ++t) {
    if (used[static_cast<size_t>(t)] > problem_.limit(t)) return;
  }
  const int trainers =
      std::accumulate(stages.begin(), stages.end(), 0, [](int sum, const StageChoice& s) { return sum + s.units; });
  if (c.max_units > 0 && trainers > c.max_units) return;
  goal_.Offer({stages, score});
}

void IntervalSearch::Seed(int points) {
  if (!(low_ <= high_) || !std::isfinite(low_)) return;
  relaxation_.set_multipliers(first_);
  for (int i = 0; i < points && !budget_.Spent(); ++i) {
    const double x = low_ * std::pow(high_ / low_, static_cast<double>(i) / points);
    std::vector<int> active = dp_.graph().All();
    if (!relaxation_.Prepare(x, x * (1 + 1e-9), active) && !relaxation_.Prepare(x, high_, active)) continue;
    const Relaxation::Bound bound = relaxation_.Improve(Cutoff(x, x), kSeedRounds);
    for (const auto& stages : bound.candidates) OfferIfFeasible(stages);
    if (bound.candidates.empty() && bound.rate < Cutoff(x, x)) SeedByBeam(x, active, kBeamWidth);
    // The slowest point is the easiest. Spend more effort there to get a first plan.
    if (i == 0 && bound.rate < Cutoff(x, x) && goal_.Cutoff(x, x) == kInfinity) SeedByBeam(x, active, kWideBeam);
  }
}

// Finds a plan by beam search, for points where no relaxed path meets the limits.
void IntervalSearch::SeedByBeam(double x, const std::vector<int>& active, int width) {
  std::vector<double> multipliers = relaxation_.multipliers();
  for (double& m : multipliers) m *= x;
  dp_.Prepare(x, active, std::move(multipliers));
  const ScheduleDp::Answer answer = dp_.SolveBeam(Cutoff(x, x) * x, width);
  if (answer.outcome == ScheduleDp::Outcome::kFound) OfferIfFeasible(answer.stages);
}

void IntervalSearch::Push(double low, double high, double bound, const Stages& active) {
  if (low <= high) open_.push({low, high, bound, active, relaxation_.multipliers()});
}

double IntervalSearch::LeastRate() {
  if (!(low_ <= high_) || !std::isfinite(low_)) return kInfinity;
  relaxation_.set_multipliers(first_);
  relaxation_.set_most_stages(0);
  std::vector<int> active = dp_.graph().All();
  const double cutoff = Cutoff(low_, high_);
  const double rate = relaxation_.Prepare(low_, high_, active) ? relaxation_.Improve(cutoff, kRounds).rate : kInfinity;
  relaxation_.set_most_stages(most_stages_);
  return rate >= cutoff ? kInfinity : rate;
}

double IntervalSearch::Run(double bound_of_all) {
  if (!(low_ <= high_) || !std::isfinite(low_)) return kInfinity;
  relaxation_.set_multipliers(first_);
  Push(low_, high_, bound_of_all, std::make_shared<std::vector<int>>(dp_.graph().All()));
  double least_left = kInfinity;
  while (!open_.empty()) {
    const Node node = open_.top();
    open_.pop();
    double bound = node.bound;
    if (bound >= Cutoff(node.low, node.high)) continue;
    if (!budget_.Spent() && Visit(node, bound)) continue;
    least_left = bound;
    break;
  }
  for (; !open_.empty(); open_.pop()) least_left = std::min(least_left, open_.top().bound);
  return least_left;
}

bool IntervalSearch::Visit(const Node& node, double& bound) {
  ++statistics_.intervals;
  relaxation_.set_multipliers(node.multipliers);
  std::vector<int> active = *node.active;
  if (!relaxation_.Prepare(node.low, node.high, active)) return true;
  const double low = std::max(node.low, relaxation_.SlowestActive());
  const Relaxation::Bound found = relaxation_.Improve(Cutoff(low, node.high), kRounds);
  for (const auto& stages : found.candidates) OfferIfFeasible(stages);
  bound = std::max(bound, found.rate);
  const double cutoff = Cutoff(low, node.high);
  if (bound >= cutoff) return true;
  relaxation_.Eliminate(cutoff, active);
  if (active.empty()) return true;
  const Stages kept = std::make_shared<std::vector<int>>(std::move(active));
  // The gap from relaxing the limits is larger than the gap from the width of the interval, so halving would not help.
  const bool narrow = goal_.Cutoff(low, node.high) < kInfinity && node.high / low - 1 <= kNarrow * (cutoff / bound - 1);
  if (narrow || low >= node.high || CountBreakpoints(low, node.high, *kept, kFewBreakpoints) <= kFewBreakpoints) {
    return Solve(low, node.high, bound, kept);
  }
  Split(low, node.high, bound, kept);
  return true;
}

// For an interval with few throughputs left: computes the cheapest plan at the slowest one, and continues above the
// throughput of that plan.
bool IntervalSearch::Solve(double low, double high, double bound, const Stages& active) {
  ++statistics_.solved;
  std::vector<double> multipliers = relaxation_.multipliers();
  for (double& m : multipliers) m *= low;
  dp_.Prepare(low, *active, std::move(multipliers));
  const double cutoff = Cutoff(low, high);
  const ScheduleDp::Answer answer = dp_.Solve(cutoff * high, false);
  if (answer.outcome == ScheduleDp::Outcome::kStopped) return false;
  if (answer.outcome == ScheduleDp::Outcome::kNone) return true;
  bound = std::max(bound, answer.hourly / high * (1 - 1e-15));
  const Score score = ScoreOf(problem_, answer.stages);
  if (score.hourly <= answer.hourly * (1 + 1e-12)) {
    goal_.Offer({answer.stages, score});
    Split(After(score.throughput), high, bound, active);
    return true;
  }
  // At its own throughput, the plan needs more servers than D(x) includes. Search for a plan of exactly this
  // throughput.
  if (!SolveExactly(low, Cutoff(low, low))) return false;
  Split(After(low), high, bound, active);
  return true;
}

bool IntervalSearch::SolveExactly(double x, double cutoff) {
  const ScheduleDp::Answer answer = dp_.Solve(cutoff * x, true);
  if (answer.outcome == ScheduleDp::Outcome::kStopped) return false;
  if (answer.outcome == ScheduleDp::Outcome::kFound) {
    goal_.Offer({answer.stages, ScoreOf(problem_, answer.stages)});
  }
  return true;
}

void IntervalSearch::Split(double low, double high, double bound, const Stages& active) {
  const double middle = std::sqrt(low) * std::sqrt(high);
  if (!(middle > low && middle < high)) {
    Push(low, low, bound, active);
    if (high > low) Push(high, high, bound, active);
    return;
  }
  Push(low, middle, bound, active);
  Push(After(middle), high, bound, active);
}

// An upper bound of the number of throughputs in [low, high] that active stages may have. Stops counting after
// `enough`.
int64_t IntervalSearch::CountBreakpoints(double low, double high, const std::vector<int>& active,
                                         int64_t enough) const {
  const StageGraph& graph = dp_.graph();
  int64_t count = 0;
  for (const int i : active) {
    const double top = std::min(high, graph.stage(i).fastest);
    const int end = graph.UnitsAt(i, top);
    count += end - graph.UnitsAt(i, low) + (graph.ThroughputOf(i, end) <= high ? 1 : 0);
    if (count > enough) break;
  }
  return count;
}

SearchedStages SearchWithStages(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                                const StageSubset& subset, int most_stages) {
  IntervalSearch search(problem, budget, goal, order, subset, most_stages);
  const double least = most_stages > 1 ? search.LeastRate() : 0;
  if (!(least < kInfinity)) return {};
  search.Seed(points);
  const double left = search.Run(least);
  if (most_stages == 0) return {left, false};
  if (left == kInfinity) return {left, true};
  return {std::min(left, std::max(least, 0.0)), false};  // the budget has ended: so many stages are left, or more
}

double SearchPlans(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                   const StageSubset& subset) {
  if (!problem.fills()) return SearchWithStages(problem, budget, goal, order, points, subset, 0).left;
  double left = kInfinity;
  bool more = true;
  for (int stages = 1; stages <= problem.layers() && more; ++stages) {
    const SearchedStages searched = SearchWithStages(problem, budget, goal, order, points, subset, stages);
    left = std::min(left, searched.left);
    more = searched.more;
  }
  return left;
}

}  // namespace medley::sched

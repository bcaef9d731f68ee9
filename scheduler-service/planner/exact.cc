// The global optimum over schedules and units, with a certificate.
//
// The cost of a plan is K * D / X with K = samples / 3600 and D its USD/h. D(x), the least hourly price of a plan of
// throughput at least x, does not fall as x grows, so on an interval [a, b] of throughputs no plan costs less than
// K * D(a) / b, nor less than what continuous units would cost at a (ScheduleDp::RateBound). Best-first branch and
// bound over intervals: the one with the least bound is split until it holds few breakpoints, which are then visited
// one by one. The bound of the best open interval is a proven lower bound at any moment.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "common/base/status.h"
#include "scheduler-service/planner/planners.h"
#include "scheduler-service/planner/schedule_dp.h"

namespace medley::sched {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kFewBreakpoints = 32;

class Search {
 public:
  Search(const Problem& problem, const Budget& budget) : problem_(problem), budget_(budget), dp_(problem, budget) {}

  Solution Run() {
    for (int t = 0; t < problem_.types(); ++t) {
      if (auto single = SingleType(problem_, t)) Offer(std::move(*single));
    }
    const double low = std::max(problem_.RequiredThroughput(), dp_.SlowestThroughput());
    const double high = dp_.FastestThroughput();
    double open = kInfinity;  // rate bound of what is left when time runs out
    if (low <= high && std::isfinite(low)) {
      open_.push({low, high, 0});
      open = Drain();
    }
    Solution solution;
    solution.complete = open == kInfinity;
    const double budget = problem_.request().constraints.budget_usd;
    if (best_ && (budget <= 0 || best_->score.cost <= budget * (1 + kTolerance))) {
      solution.best = best_;
      solution.lower_bound = std::min(best_->score.cost, CostAtRate(open));  // the cost, to kSameCost, when complete
    }
    return solution;
  }

 private:
  struct Interval {
    double low, high;
    double bound;  // USD/h per sample/s
    bool operator<(const Interval& other) const {
      return bound != other.bound ? bound > other.bound : low > other.low;  // least bound, then slowest, first
    }
  };

  double CostAtRate(double rate) const { return problem_.total_samples() / 3600 * rate; }

  void Offer(Provisioned plan) {
    if (best_) {
      const double ratio = plan.score.cost / best_->score.cost;
      const bool smaller = plan.score.hourly < best_->score.hourly * (1 - kTolerance);
      if (!(ratio < 1 - kSameCost || (ratio < 1 + kSameCost && smaller))) return;
    }
    best_ = std::move(plan);
    // What is not cheaper by more than rounding need not be looked at.
    best_rate_ = std::min(best_rate_, best_->score.hourly / best_->score.throughput * (1 - kSameCost));
  }

  // The bound that was open when the budget ended, or infinity.
  double Drain() {
    while (!open_.empty()) {
      const Interval interval = open_.top();
      open_.pop();
      if (interval.bound >= best_rate_) continue;
      if (budget_.Spent() || !Visit(interval)) return interval.bound;
    }
    return kInfinity;
  }

  // False when stopped.
  bool Visit(const Interval& interval) {
    if (dp_.CountBreakpoints(interval.low, interval.high) <= kFewBreakpoints ||
        interval.high <= interval.low * (1 + 1e-9)) {
      const std::vector<double> points = dp_.Breakpoints(interval.low, interval.high);
      return points.empty() || VisitPoints(points, 0, points.size() - 1);
    }
    double solved = interval.low, bound = interval.bound;
    if (!Probe(interval.low, interval.high, solved, bound)) return false;
    if (bound >= best_rate_) return true;
    const double low = std::max(interval.low, solved);
    if (low > interval.high) return true;
    const double middle = std::sqrt(low) * std::sqrt(interval.high);
    if (!(middle > low && middle < interval.high)) {
      open_.push({low, low, bound});
      open_.push({interval.high, interval.high, bound});
      return true;
    }
    open_.push({low, middle, bound});
    open_.push({middle, interval.high, bound});
    return true;
  }

  // Looks at plans of throughput >= x that matter up to `upper`. `solved`: every plan slower than that has been
  // accounted for; `bound`: raised to what is proven for [x, upper]. False when stopped.
  bool Probe(double x, double upper, double& solved, double& bound) {
    dp_.Prepare(x);
    bound = std::max(bound, dp_.RateBound(upper));
    if (bound >= best_rate_) return true;
    const ScheduleDp::Answer answer = dp_.Solve(best_rate_ * upper, false);
    if (answer.outcome == ScheduleDp::Outcome::kStopped) return false;
    if (answer.outcome == ScheduleDp::Outcome::kNone) {
      bound = kInfinity;
      return true;
    }
    bound = std::max(bound, answer.hourly / upper * (1 - 1e-15));
    const Score score = ScoreOf(problem_, answer.stages);
    if (!(score.hourly <= answer.hourly * (1 + 1e-12))) return true;  // needs more servers at its own pace
    Offer({answer.stages, score});
    solved = std::nextafter(score.throughput, kInfinity);
    return true;
  }

  // Plans whose throughput is one of points[i..j].
  bool VisitPoints(const std::vector<double>& points, size_t i, size_t j) {
    double solved = points[i], bound = 0;
    if (!Probe(points[i], points[j], solved, bound)) return false;
    if (bound >= best_rate_) return true;
    if (solved <= points[i]) {  // charged less than any plan of this throughput may cost: ask for exactly this one
      const ScheduleDp::Answer answer = dp_.Solve(best_rate_ * points[i], true);
      if (answer.outcome == ScheduleDp::Outcome::kStopped) return false;
      if (answer.outcome == ScheduleDp::Outcome::kFound) {
        Offer({answer.stages, ScoreOf(problem_, answer.stages)});
      }
      solved = std::nextafter(points[i], kInfinity);
    }
    while (i <= j && points[i] < solved) ++i;
    if (i > j) return true;
    const size_t middle = i + (j - i) / 2;
    return VisitPoints(points, i, middle) && (middle == j || VisitPoints(points, middle + 1, j));
  }

  const Problem& problem_;
  const Budget& budget_;
  ScheduleDp dp_;
  std::priority_queue<Interval> open_;
  std::optional<Provisioned> best_;
  double best_rate_ = kInfinity;
};

class Exact final : public Planner {
 public:
  Exact(std::string_view name, std::string_view description) : name_(name), description_(description) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  bool proves_optimality() const override { return true; }
  absl::StatusOr<Solution> Solve(const Problem& problem, uint64_t, const Budget& budget) const override {
    return Search(problem, budget).Run();
  }

 private:
  const std::string_view name_, description_;
};

}  // namespace

std::unique_ptr<Planner> MakeExact() {
  return std::make_unique<Exact>("exact", "the global optimum over schedules and units, with a proof");
}

std::unique_ptr<Planner> MakeAuto() {
  return std::make_unique<Exact>("auto", "exact within the time budget, else the best plan known then with its gap");
}

}  // namespace medley::sched

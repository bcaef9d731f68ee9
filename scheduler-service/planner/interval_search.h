// Branch and bound over intervals of throughput, used by the planner `exact` and for the Pareto front.
//
// The cost of a plan is K * D / X, where K = samples / 3600, D is its USD/h and X its throughput. The search compares
// the rate D / X. For each interval it computes a lower bound of the rate of the interval's plans (relaxation.h). With
// this bound it drops the interval, or excludes stages that no wanted plan can contain and splits the interval. If an
// interval has only few throughputs left, it computes the cheapest plan at the slowest one (schedule_dp.h); all plans
// up to the throughput of that plan cost at least as much. So the search skips only what a bound excludes. Not
// thread-safe.
#pragma once

#include <memory>
#include <queue>
#include <vector>

#include "scheduler-service/planner/relaxation.h"
#include "scheduler-service/planner/schedule_dp.h"
#include "scheduler-service/provision/provisioned.h"

namespace medley::sched {

// Defines which plans a search wants, and receives them.
class Goal {
 public:
  virtual ~Goal() = default;
  // Plans with a throughput in [low, high] and this rate or more are not wanted.
  virtual double Cutoff(double low, double high) const = 0;
  // Called with plans that meet all constraints, except that they may exceed the budget.
  virtual void Offer(Provisioned plan) = 0;
  // The best plan so far, if one is wanted; null: none.
  virtual const Provisioned* Best() const { return nullptr; }
};

enum class SearchOrder { kLeastBoundFirst, kFastestFirst };

class IntervalSearch {
 public:
  // Only plans of stages in `subset`. With `most_stages` above 0, only plans with at most that many stages, as if each
  // filled and drained like one of `most_stages` (Problem::ForStages): a lower bound for those with more. Everything
  // but the problem must outlive the search.
  IntervalSearch(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order,
                 const StageSubset& subset = {}, int most_stages = 0);

  // The interval of throughputs that plans may have; empty (low > high) if no stage is possible.
  double low() const { return low_; }
  double high() const { return high_; }
  // Offers good plans at `points` throughputs spread over the interval, so that the search starts with a good cutoff.
  void Seed(int points);
  // A lower bound of the rate of all wanted plans with `most_stages` or more stages; infinite if there is none.
  double LeastRate();
  // Offers every wanted plan, but only one of equal ones. Returns a lower bound of the rate of all plans that were not
  // examined when the budget ended; infinite if the search is complete.
  // `bound`: a lower bound of the rate of all plans.
  double Run(double bound = 0);

  struct Statistics {
    int64_t intervals = 0, solved = 0;
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  using Stages = std::shared_ptr<const std::vector<int>>;
  struct Node {
    double low, high;
    double bound;
    Stages active;
    std::vector<double> multipliers;
  };
  struct Later {
    SearchOrder order;
    bool operator()(const Node& a, const Node& b) const;
  };

  double Cutoff(double low, double high) const;
  void OfferIfFeasible(const std::vector<StageChoice>& stages);
  void SeedByBeam(double x, const std::vector<int>& active, int width);
  void Push(double low, double high, double bound, const Stages& active);
  // Returns false if the budget ended; `bound` is then the best known bound of the interval.
  bool Visit(const Node& node, double& bound);
  bool Solve(double low, double high, double bound, const Stages& active);
  bool SolveExactly(double x, double cutoff);
  int64_t CountBreakpoints(double low, double high, const std::vector<int>& active, int64_t enough) const;
  void Split(double low, double high, double bound, const Stages& active);

  const Problem problem_;
  const int most_stages_;
  const Budget& budget_;
  Goal& goal_;
  const SearchOrder order_;
  ScheduleDp dp_;
  Relaxation relaxation_;
  double low_, high_;
  std::vector<double> first_;  // multipliers with which searches begin: of the subset's bound, if it has one
  double everything_ = 0;      // cost of all units that the limits allow, in USD/h
  std::priority_queue<Node, std::vector<Node>, Later> open_;
  Statistics statistics_;
};

// What one search leaves.
struct SearchedStages {
  double left = kInfinity;  // what IntervalSearch::Run returns
  bool more = false;        // plans with more stages may be wanted
};
// One IntervalSearch, seeded at `points` throughputs; `left` is a bound of plans with more stages, too, unless `more`.
SearchedStages SearchWithStages(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                                const StageSubset& subset, int most_stages);

// Searches the plans of stages in `subset`: IntervalSearch once for each number of stages where pipelines fill and
// drain, until a bound excludes more stages, else once. Each search is seeded at `points` throughputs. Returns what
// IntervalSearch::Run returns.
double SearchPlans(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order, int points,
                   const StageSubset& subset = {});

}  // namespace medley::sched

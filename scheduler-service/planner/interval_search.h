// Branch and bound over intervals of throughput: the engine of the planner exact and of the Pareto front.
//
// The cost of a plan is K * D / X with K = samples / 3600 and D its USD/h; rate = D / X is what is compared. Each
// interval gets a lower bound of the rate of its plans (relaxation.h), by which it is dropped, or loses the stages
// that no wanted plan has; then it is split. Where few throughputs are left the cheapest plan at the slowest of them
// is computed (schedule_dp.h): every plan up to that plan's own throughput costs at least as much. So nothing is left
// unexamined but what a bound excludes. Not thread-safe.
#pragma once

#include <memory>
#include <queue>
#include <vector>

#include "scheduler-service/planner/relaxation.h"
#include "scheduler-service/planner/schedule_dp.h"

namespace medley::sched {

// What a search looks for.
class Goal {
 public:
  virtual ~Goal() = default;
  // Plans whose throughput is in [low, high] and whose rate is this or more are not wanted.
  virtual double Cutoff(double low, double high) const = 0;
  // A plan that meets every constraint but the budget.
  virtual void Offer(Provisioned plan) = 0;
};

enum class SearchOrder { kLeastBoundFirst, kFastestFirst };

class IntervalSearch {
 public:
  IntervalSearch(const Problem& problem, const Budget& budget, Goal& goal, SearchOrder order);

  // Throughputs that plans may have; empty (low > high) when there is no stage.
  double low() const { return low_; }
  double high() const { return high_; }
  // Good plans at `points` throughputs spread evenly over the interval, so that the search begins with something to
  // beat.
  void Seed(int points);
  // Offers every wanted plan, but for equals. Returns a rate that no plan comes below which was not accounted for when
  // the budget ended; infinite when all were.
  double Run();

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
  // False when stopped; `bound` is then what is known of the interval.
  bool Visit(const Node& node, double& bound);
  bool Solve(double low, double high, double bound, const Stages& active);
  bool SolveExactly(double x, double cutoff);
  int64_t CountBreakpoints(double low, double high, const std::vector<int>& active, int64_t enough) const;
  void Split(double low, double high, double bound, const Stages& active);

  const Problem& problem_;
  const Budget& budget_;
  Goal& goal_;
  const SearchOrder order_;
  ScheduleDp dp_;
  Relaxation relaxation_;
  double low_, high_;
  double everything_ = 0;  // USD/h of all units that the limits allow
  std::priority_queue<Node, std::vector<Node>, Later> open_;
  Statistics statistics_;
};

}  // namespace medley::sched

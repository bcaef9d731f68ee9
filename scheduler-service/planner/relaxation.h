// A lower bound of the cost of all plans whose throughput is in an interval [a, b], with the limits relaxed.
//
// Consider a stage that needs k units for throughput a, and let x_k be its throughput with k units. For every x in [a,
// b] the stage costs at least price * k / min(b, x_k) per sample/s: its units are a step function of x, and units / x
// is larger on every later step. So a shortest path over these weights is a lower bound for every plan in the interval.
// Limits (units of a type, maxUnits, stages) that hold at x also hold at a. They enter the weights with multipliers
// (Lagrangian relaxation; Geoffrion 1974), which subgradient steps improve. Shortest paths from both ends give a bound
// for each stage, and stages whose bound reaches the cutoff are excluded. Where neighbours matter, a stage has an edge
// for each number of units that it may need, and edges that do not allow each other are not on one path; a stage with k
// units costs at least what it would if it were as fast as beside its best neighbours. Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/planner/rest_of_paths.h"
#include "scheduler-service/planner/stage_graph.h"

namespace medley::sched {

class Relaxation {
 public:
  // `most_stages`: of a plan; 0: any number.
  explicit Relaxation(const StageGraph& graph, int most_stages = 0);

  // Sets the interval [low, high] and the stages for the next calls. `active` is ascending; stages that cannot reach
  // `low` are removed from it. Returns false if there is no path.
  bool Prepare(double low, double high, std::vector<int>& active);
  // The slowest throughput >= `low` that an active stage can have; no plan has a throughput between `low` and this.
  double SlowestActive() const { return slowest_active_; }

  struct Bound {
    double rate = 0;  // lower bound for plans in the interval, in USD/h per sample/s; infinite if there is no plan
    // The relaxed paths that meet the limits at `low` (without their servers), as stages with the units for `low`.
    std::vector<std::vector<StageChoice>> candidates;
  };
  // Takes at most `rounds` subgradient steps from the current multipliers, until the bound reaches `cutoff`.
  Bound Improve(double cutoff, int rounds);
  // Removes from `active` the stages for which every path reaches `cutoff`, with the best multipliers of Improve.
  void Eliminate(double cutoff, std::vector<int>& active);

  // One for each type, then one for maxUnits, in USD/h per sample/s and unit; then one per stage, for `most_stages`.
  const std::vector<double>& multipliers() const { return multipliers_; }
  void set_most_stages(int most) { most_stages_ = most; }
  void set_multipliers(std::vector<double> multipliers) { multipliers_ = std::move(multipliers); }

 private:
  struct Arc : StageEdge {
    double rate = 0;            // cost of trainers and, if linear_servers_, of servers
    double server_seconds = 0;  // ServerLoad::seconds
    double weight = 0;          // rate plus multipliers
  };

  void PrepareServers(double low, double high);
  void Weigh();
  void Backward() { rests_.Compute(arcs_, besides_); }
  void Forward();
  double PathBound() const;
  std::vector<int> Path() const;  // indices into arcs_
  // Units used by `path`, servers included; same order as multipliers().
  std::vector<double> UseOf(const std::vector<int>& path) const;
  double QuotaOf(size_t component) const;
  std::vector<StageChoice> Choices(const std::vector<int>& path) const;
  // Takes a subgradient step; returns false if the multipliers are optimal.
  bool Step(const std::vector<double>& use, double gain, double scale);

  const StageGraph& graph_;
  const Problem& problem_;
  const size_t components_, all_units_, all_stages_;  // the indices of maxUnits and stages
  int most_stages_;
  std::vector<double> multipliers_;
  double low_ = 0, high_ = 0;
  double slowest_active_ = 0;
  std::vector<StageEdge> edges_;  // of one stage
  std::vector<Arc> arcs_;
  std::vector<Beside> besides_;  // of the arcs
  // The cost of servers is either linear in the load of the path, or that of the units that every path needs at least.
  bool linear_servers_ = true;
  int least_servers_ = 0;
  double server_rate_ = 0;  // cost of least_servers_
  double constant_ = 0;     // constant part of the bound: servers minus multipliers * limits
  RestOfPaths rests_;
  std::vector<double> so_far_;  // by layer: the least weight of paths from the first one, whether edges fit or not
};

}  // namespace medley::sched

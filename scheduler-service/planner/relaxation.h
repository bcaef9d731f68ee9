// A lower bound of the cost of all plans whose throughput is in an interval, with the quotas relaxed.
//
// For x in [a, b] a stage that needs k units at a, and then runs at x_k, costs price * k / min(b, x_k) per sample/s at
// the least: its units are a step function of x, and on every later step units / x is larger. So a shortest path over
// those weights bounds every plan in the interval. Quotas (units of a type, trainers in all) hold at a if they hold
// at x; they are taken into the weights with multipliers (Lagrangian relaxation; Geoffrion 1974), which subgradient
// steps improve. Paths forward and backward give each stage's own bound, by which stages are dropped for good.
// Not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "scheduler-service/planner/stage_graph.h"

namespace medley::sched {

class Relaxation {
 public:
  explicit Relaxation(const StageGraph& graph);

  // What the next calls speak of: throughputs [low, high], paths over `active` (ascending; stages that cannot reach
  // `low` are removed). False: there is no path.
  bool Prepare(double low, double high, std::vector<int>& active);
  // The slowest throughput not below `low` that an active stage has: no plan lies between.
  double SlowestActive() const { return slowest_active_; }

  struct Bound {
    double rate = 0;  // USD/h per sample/s that no plan in the interval comes below; infinite: there is none
    // Stages with units at `low`, of each relaxed path that keeps the quotas at `low` without its servers.
    std::vector<std::vector<StageChoice>> candidates;
  };
  // At most `rounds` subgradient steps, until the bound reaches `cutoff`. Begins with the multipliers that stand.
  Bound Improve(double cutoff, int rounds);
  // Drops the stages through which no path is below `cutoff`, with the best multipliers of Improve.
  void Eliminate(double cutoff, std::vector<int>& active);

  // One for each type, then trainers in all; USD/h per sample/s and unit.
  const std::vector<double>& multipliers() const { return multipliers_; }
  void set_multipliers(std::vector<double> multipliers) { multipliers_ = std::move(multipliers); }

 private:
  struct Arc {
    int stage, first, last, type, units;
    double rate;            // workers and, while servers are linear, their share
    double server_seconds;  // sum v
    double weight;          // rate with multipliers
  };

  void PrepareServers(double low, double high);
  void Weigh();
  void Backward();
  void Forward();
  double PathBound() const;
  std::vector<int> Path() const;  // arcs
  // Units used by `path`, servers included; same order as multipliers().
  std::vector<double> UseOf(const std::vector<int>& path) const;
  double QuotaOf(size_t component) const;
  std::vector<StageChoice> Choices(const std::vector<int>& path) const;
  // A subgradient step; false: the multipliers are optimal.
  bool Step(const std::vector<double>& use, double gain, double scale);

  const StageGraph& graph_;
  const Problem& problem_;
  const size_t components_;
  std::vector<double> multipliers_;
  double low_ = 0, high_ = 0;
  double slowest_active_ = 0;
  std::vector<Arc> arcs_;
  // Servers: either linear in the load of the path, or the units that every path needs at least.
  bool linear_servers_ = true;
  int least_servers_ = 0;
  double server_rate_ = 0;               // of least_servers_
  double constant_ = 0;                  // of the bound: server_rate_ and -multipliers * quotas
  std::vector<TwoBest> to_go_, so_far_;  // by layer
};

}  // namespace medley::sched

// Finds the cheapest schedule for a given throughput x, by dynamic programming over layers with labels.
//
// For a given x, every possible stage has a smallest number of units beside given neighbours, so the schedule is a
// shortest path over the edges of the stages (stage_graph.h).
// The limits of types, servers and maxUnits couple the stages, so each partial path is a label: its cost, the units it
// uses and its server load. A label is dropped if
// - its cost plus a lower bound of the remaining cost (a Lagrangian bound, see relaxation.h) reaches the cutoff,
// - the units that it uses and still needs exceed a limit, or
// - it is dominated: another label is at least as good in all components, and what may follow the one may follow the
//   other.
// A limit becomes a component of the labels only after a solution has violated it, because most limits are not binding.
// A plan may be faster than x. It is then charged as if it ran at x. Hence the hourly price D(x) of the result does not
// decrease as x grows, and it is a lower bound for all plans with throughput >= x.
// Not thread-safe. The problem and the budget must outlive it.
#pragma once

#include <vector>

#include "scheduler-service/planner/rest_of_paths.h"
#include "scheduler-service/planner/stage_graph.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

class ScheduleDp {
 public:
  // Only plans of stages in `subset`. With `most_stages` above 0, only plans that have no more.
  ScheduleDp(const Problem& problem, const Budget& budget, const StageSubset& subset = {}, int most_stages = 0);

  enum class Outcome { kFound, kNone, kStopped };
  struct Answer {
    Outcome outcome = Outcome::kNone;
    double hourly = 0;  // D(x): USD/h as if the plan ran at x
    std::vector<StageChoice> stages;
  };

  const StageGraph& graph() const { return graph_; }

  // Sets the throughput `x` for the following calls, with all stages and no multipliers.
  void Prepare(double x);
  // The same with only the stages `active` (ascending). `multipliers` are USD/h per unit of each type, then of
  // maxUnits, then of each stage. They must not be negative. Any values give correct results; good ones make the search
  // fast.
  void Prepare(double x, const std::vector<int>& active, std::vector<double> multipliers);
  // The cheapest plan whose D(x) is below `cutoff`; kNone if there is none. With `exactly`, considers only plans whose
  // throughput is x and which have `most_stages` stages, so D(x) is their true price.
  Answer Solve(double cutoff, bool exactly);
  // Finds a good plan below `cutoff` quickly, by keeping only `width` labels per layer. kNone proves nothing.
  Answer SolveBeam(double cutoff, int width);

  // Bounds of the throughput of any plan.
  double SlowestThroughput() const { return graph_.SlowestThroughput(); }
  double FastestThroughput() const { return graph_.FastestThroughput(); }

 private:
  // A stage with units for the current x.
  struct Arc : StageEdge {
    double hourly = 0;   // cost of trainers, USD/h
    double weight = 0;   // cost of trainers, lower bound of the cost of servers, and multipliers
    bool exact = false;  // the stage runs at exactly x, whatever its neighbours are
  };
  struct Label {
    double hourly = 0;  // cost of trainers so far, USD/h
    double weight = 0;  // sum of the arcs' weights
    ServerLoad load;
    bool exact = false;
    int stages = 0;
    int arc = -1;
    int parent = -1;
  };
  // The fewest and the most units that a path from a layer to the end may use; indexed by layer.
  struct Rest {
    std::vector<int> least, most;
  };

  void ComputeRest();
  int* UsedOf(int label) { return used_.data() + static_cast<size_t>(label) * tracked_.size(); }
  const int* UsedOf(int label) const { return used_.data() + static_cast<size_t>(label) * tracked_.size(); }
  void Extend(int label, const Arc& arc, double cutoff);
  bool WithinQuotas(int label, int layer) const;
  // Use of a tracked component up to this value cannot exceed the limit in or after `layer`, so it does not matter for
  // dominance.
  int Floor(size_t component, int layer) const;
  bool IsExact(const Label& from, const Arc& arc) const;
  bool MayBeFollowedLike(const Label& one, const Label& other, int layer) const;
  bool Dominates(int a, int b, int layer) const;
  void DropDominated(int layer);
  void KeepBest(int layer, int width);
  Answer Tracked(double cutoff, bool exactly, int width);
  Answer Repeat(double cutoff, bool exactly, int width);
  int Best(double& least, bool exactly) const;
  std::vector<StageChoice> PathTo(int label) const;
  // Adds the limits that `stages` violate at x to tracked_; returns false if they violate none.
  bool TrackViolated(const std::vector<StageChoice>& stages);
  int TrackedLimit(int component) const;
  int UseOf(const Arc& arc, int component) const;

  const Problem& problem_;
  const Budget& budget_;
  const StageGraph graph_;
  const int most_stages_;
  // The limits that labels track: the number of a type, -1 for maxUnits, or -2 for most_stages_.
  std::vector<int> tracked_;
  // For the current x:
  double x_ = 0;
  double server_hourly_ = 0;  // lower bound of USD/h per second of server load
  std::vector<double> multipliers_;
  std::vector<StageEdge> edges_;  // of one stage
  std::vector<Arc> arcs_;
  std::vector<Beside> besides_;    // of the arcs
  std::vector<size_t> arcs_from_;  // [layer]: index of its first arc; the last entry is arcs_.size()
  RestOfPaths rests_;
  double constant_ = 0;     // -multipliers * limits
  bool exactly_ = false;    // argument of the current Solve
  std::vector<Rest> rest_;  // by tracked component
  std::vector<Label> labels_;
  std::vector<int> used_;                   // [label][component]
  std::vector<std::vector<int>> frontier_;  // labels by layer
};

}  // namespace medley::sched

// The cheapest schedule for one given throughput x: dynamic programming over layers, with labels.
//
// For x every possible stage has its smallest units, so the rest is a shortest path. What couples stages (limits of a
// type, servers, units in all) makes a path a label with several components. A label is dropped when what it costs
// and at least must still cost (a Lagrangian bound, see relaxation.h) reaches the cutoff, when what it uses and must
// still use exceeds a quota, or when two others of other types (or one of its own) are nowhere worse: whatever type
// comes next, one of them may take its place. Quotas are tracked only once a solution violates them, because most do
// not bind. A plan may be faster than x: it is then charged as if it were slowed down to x, so that the hourly price
// D(x) of the answer does not fall as x grows, and is a lower bound for every plan of throughput >= x.
// Not thread-safe; one problem and one budget, both outlive it.
#pragma once

#include <vector>

#include "scheduler-service/planner/planner.h"
#include "scheduler-service/planner/stage_graph.h"

namespace medley::sched {

class ScheduleDp {
 public:
  ScheduleDp(const Problem& problem, const Budget& budget);

  enum class Outcome { kFound, kNone, kStopped };
  struct Answer {
    Outcome outcome = Outcome::kNone;
    double hourly = 0;  // D(x): USD/h when slowed down to x
    std::vector<StageChoice> stages;
  };

  const StageGraph& graph() const { return graph_; }

  // Computes units at `x`. The other calls refer to this x. All stages, no multipliers.
  void Prepare(double x);
  // The same for the stages `active` (ascending); `multipliers`: USD/h per unit of each type, then of trainers in all,
  // not negative; any are valid, good ones make it fast.
  void Prepare(double x, const std::vector<int>& active, std::vector<double> multipliers);
  // The cheapest plan at x whose D(x) is below `cutoff`; kNone: none. With `exactly`, only plans whose throughput is
  // x itself, so that D(x) is their true price.
  Answer Solve(double cutoff, bool exactly);
  // A good plan below `cutoff`, quickly: keeps only `width` labels a layer. kNone proves nothing.
  Answer SolveBeam(double cutoff, int width);

  // Bounds of the throughput of any plan.
  double SlowestThroughput() const { return graph_.SlowestThroughput(); }
  double FastestThroughput() const { return graph_.FastestThroughput(); }

 private:
  // A stage at the current x.
  struct Arc {
    int stage, first, last, type, units;
    double hourly;  // workers
    double weight;  // workers, the least that its servers cost, multipliers
    bool exact;     // runs at exactly x
  };
  struct Label {
    double hourly = 0;  // workers so far
    double weight = 0;  // sum of the arcs' weights
    ServerLoad load;
    bool exact = false;
    int arc = -1;
    int parent = -1;
    int type = -1;
  };
  // What a path must or may still use from a layer to the end.
  struct Rest {
    std::vector<int> least, most;
  };

  void ComputeToGo();
  void ComputeRest();
  bool Hopeless(const Label& label, int layer, double cutoff) const;
  int* UsedOf(int label) { return used_.data() + static_cast<size_t>(label) * tracked_.size(); }
  const int* UsedOf(int label) const { return used_.data() + static_cast<size_t>(label) * tracked_.size(); }
  void Extend(int label, const Arc& arc, double cutoff);
  bool WithinQuotas(int label, int layer) const;
  // Units beyond which use of a tracked component decides nothing any more in `layer`.
  int Floor(size_t component, int layer) const;
  bool Dominates(int a, int b, int layer) const;
  void DropDominated(int layer);
  void KeepBest(int layer, int width);
  Answer Tracked(double cutoff, bool exactly, int width);
  Answer Repeat(double cutoff, bool exactly, int width);
  int Best(double& least, bool exactly) const;
  std::vector<StageChoice> PathTo(int label) const;
  // Tracks what `stages` violate at x; false when they violate nothing.
  bool TrackViolated(const std::vector<StageChoice>& stages);
  int TrackedLimit(int component) const;
  int UseOf(const Arc& arc, int component) const;

  const Problem& problem_;
  const Budget& budget_;
  const StageGraph graph_;
  // Components of use: a type's number, or -1 for trainers in all.
  std::vector<int> tracked_;
  // At the current x:
  double x_ = 0;
  double server_hourly_ = 0;  // USD/h per second of server load, at the least
  std::vector<double> multipliers_;
  std::vector<Arc> arcs_;
  std::vector<size_t> arcs_from_;  // [layer]: its first arc; one more entry
  std::vector<TwoBest> to_go_;     // of weights, by layer
  double constant_ = 0;            // -multipliers * quotas
  bool exactly_ = false;           // of the Solve under way
  std::vector<Rest> rest_;         // by component
  std::vector<Label> labels_;
  std::vector<int> used_;                   // [label][component]
  std::vector<std::vector<int>> frontier_;  // labels by layer
};

}  // namespace medley::sched

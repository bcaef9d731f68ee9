// The cheapest schedule for one given throughput x: dynamic programming over (layers done, type of the last stage).
//
// For x every possible stage has its smallest units, so the rest is a shortest path. What couples stages (limits of a
// type, servers, units in all) makes a path a label with several components; a label is dropped when another one of
// the same state is nowhere worse. Limits are tracked only once a solution violates them, because most do not bind.
// A plan may be faster than x: it is then charged as if it were slowed down to x, so that the hourly price D(x) of the
// answer does not fall as x grows, and is a lower bound for every plan of throughput >= x.
// Not thread-safe; one problem and one budget, both outlive it.
#pragma once

#include <vector>

#include "scheduler-service/planner/planner.h"

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

  // Computes the stages' units at `x`. The other calls refer to this x.
  void Prepare(double x);
  // Lower bound of USD/h per sample/s over plans with throughput in [x, upper]; infinite: there are none.
  double RateBound(double upper);
  // The cheapest plan at x whose D(x) is below `cutoff`; kNone: none. With `exactly`, only plans whose throughput is
  // x itself, so that D(x) is their true price.
  Answer Solve(double cutoff, bool exactly);

  // Distinct throughputs in [low, high] that some stage may have: an upper bound of their number ...
  int64_t CountBreakpoints(double low, double high) const;
  // ... and they themselves, ascending.
  std::vector<double> Breakpoints(double low, double high) const;
  // Bounds of the throughput of any plan.
  double SlowestThroughput() const;
  double FastestThroughput() const;

 private:
  // A stage that the problem allows.
  struct Edge {
    int first, last, type;
    StageTerms terms;
    ServerLoad load;
    // At the current x:
    int units = 0;        // 0: out of reach
    double hourly = 0;    // workers
    double bound = 0;     // workers and the least that its servers cost
    bool exact = false;   // runs at exactly x
  };
  struct Label {
    double hourly = 0;  // workers so far
    ServerLoad load;
    std::vector<int> used;  // tracked components
    bool exact = false;
    int edge = -1;
    int parent = -1;  // in the state that the edge begins at
    int parent_type = -1;
  };
  using State = std::vector<Label>;

  size_t StateAt(int layer, int type) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(problem_.types()) + static_cast<size_t>(type);
  }
  void ComputeToGo(const std::vector<double>& weight, std::vector<double>& to_go) const;
  void ComputeUseToGo();
  Answer SolveTracked(double cutoff, bool exactly);
  bool Extend(const Label& label, int label_index, int label_type, int edge_index, double cutoff);
  bool WithinLimits(const Label& label, int layer) const;
  static void Insert(State& state, Label label);
  static bool Dominates(const Label& a, const Label& b);
  Answer Best(double cutoff, bool exactly) const;
  std::vector<StageChoice> PathTo(int type, int index) const;
  // Tracks what `stages` violate at x; false when they violate nothing.
  bool TrackViolated(const std::vector<StageChoice>& stages);
  int TrackedLimit(int component) const;
  int UseOf(const Edge& edge, int component) const;

  const Problem& problem_;
  const Budget& budget_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> edges_from_;  // by first layer
  // Components of Label::used: a type's number, or -1 for trainers in all.
  std::vector<int> tracked_;
  // At the current x:
  double x_ = 0;
  std::vector<double> to_go_;                // [layer][type]: least bound from here, not on this type first
  std::vector<std::vector<int>> use_to_go_;  // [component][layer]
  std::vector<State> states_;
};

}  // namespace medley::sched

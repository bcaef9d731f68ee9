// All stages that a plan of the problem may have, as the edges of a graph from layer to layer.
//
// A plan is a path from the first layer to the last; neighbouring stages may be of one type. Where the types of its
// neighbours matter (Problem::TermsIn), how many units a stage needs for a throughput depends on them: then it has an
// edge for each such number, which says beside which types it is enough. Every pair of neighbours whose edges allow
// each other reaches the throughput, and edges with fewer units allow fewer types. So neighbours decide together, but
// paths need no state for each pair of types. Immutable and thread-safe. The problem must outlive it. Size: layers^2 /
// 2 * types.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planning/budget.h"

namespace medley::sched {

// Layers first..last (inclusive) on one type.
struct PossibleStage {
  int first = 0;
  int last = 0;
  int type = 0;
  StageTerms terms;  // the least, whatever its neighbours are
  ServerLoad load;
  double slowest = 0;  // samples/s with the fewest units, by these terms
  double fastest = 0;  // samples/s with the type's limit, by these terms
};

// A set of types. Requests have at most 64.
using TypeSet = uint64_t;
inline constexpr TypeSet kAllTypes = ~TypeSet{0};
inline bool Has(TypeSet set, int type) { return (set >> type & 1) != 0; }

// A possible stage with the units that it needs for a throughput.
struct StageEdge {
  int stage = 0;  // index of the possible stage
  int first = 0, last = 0, type = 0, units = 0;
  int beside = -1;  // index of its Beside; -1: the units are enough beside all types
};

// The types of the neighbours for which the units of an edge are enough.
struct Beside {
  TypeSet before = kAllTypes, after = kAllTypes;
};

// True if `next`, which begins where `edge` ends, may follow it.
inline bool Fit(const StageEdge& edge, const StageEdge& next, const std::vector<Beside>& besides) {
  return (edge.beside < 0 || Has(besides[static_cast<size_t>(edge.beside)].after, next.type)) &&
         (next.beside < 0 || Has(besides[static_cast<size_t>(next.beside)].before, edge.type));
}

// The largest size of a graph: about 50 MB, and visiting all stages once takes about a second.
inline constexpr int64_t kMostPossibleStages = 400'000;

class LayerBound;

// The stages that a search looks at. What it points to must outlive the search.
struct StageSubset {
  const std::vector<int>* schedule = nullptr;  // the type of each layer; null: any
  // By layer, and one more for the end of the model: not 0 where a stage may begin or end. Null: everywhere.
  const std::vector<char>* ends = nullptr;
  // Leaves out stages of which every plan has this rate or more (USD/h per sample/s), by the bound of the problem.
  const LayerBound* bound = nullptr;
  double cutoff = kInfinity;
  const Budget* budget = nullptr;  // Count ends when it is spent
};

class StageGraph {
 public:
  // InvalidArgument if the problem may have more than kMostPossibleStages stages.
  static absl::Status CheckSize(const Problem& problem);
  // How many stages a graph would have; it stops counting above `enough`, and says more than that when the subset's
  // budget is spent before.
  static int64_t Count(const Problem& problem, const StageSubset& subset, int64_t enough);

  // With `most_stages` 1, only the stages of plans of one stage; other numbers do not matter here.
  explicit StageGraph(const Problem& problem, const StageSubset& subset = {}, int most_stages = 0);

  const Problem& problem() const { return problem_; }
  // Ordered by (first, type, last). Does not contain stages on types whose limit is below minUnits.
  const std::vector<PossibleStage>& stages() const { return stages_; }
  const PossibleStage& stage(int i) const { return stages_[static_cast<size_t>(i)]; }
  // 0, 1, ... stages().size() - 1.
  std::vector<int> All() const;
  bool has_servers() const { return has_servers_; }

  // The smallest number of units of stage `i` for x samples/s, by its least terms; 0 if no number is enough. Equal to
  // Problem::MinUnits.
  int UnitsAt(int i, double x) const;
  // Adds the edges of stage `i` for x samples/s; none if no number of units is enough beside any types. More units
  // allow more types. Returns a lower bound, at least x, of the samples/s that it may have with these units; infinite
  // without edges.
  double AddEdges(int i, double x, std::vector<StageEdge>& edges, std::vector<Beside>& besides) const;
  // True if the boundaries of `type` with other types need at most what those of `other` with these types need.
  bool IsNoWorseNeighbour(int type, int other) const {
    return no_worse_.empty() || Has(no_worse_[static_cast<size_t>(type)], other);
  }
  // True if the edge's stage runs at exactly `x` because of its boundary with the stage before or after.
  bool RunsAtBefore(const StageEdge& edge, int type_before, double x) const;
  bool RunsAtAfter(const StageEdge& edge, int type_after, double x) const;
  double ThroughputOf(int i, int units) const { return problem_.Throughput(stage(i).terms, units); }

  // Bounds of the throughput of all plans; SlowestThroughput is infinite if no stage is possible.
  double SlowestThroughput() const;
  double FastestThroughput() const;

 private:
  // Calls `found` with the first layer, the last one and the type of each stage of the subset, in the order of stages_,
  // until it returns false.
  template <class Found>
  static void ForEach(const Problem& problem, const StageSubset& subset, int most_stages, Found found);

  // Types whose boundaries with one type cost the same.
  struct Neighbours {
    Hop hop;
    TypeSet types = 0;
  };
  // Units that a stage needs beside some types.
  struct Need {
    int units = 0;
    TypeSet types = 0;
  };

  void FindNeighbours();
  bool IsNoWorse(int type, int other) const;
  // What one end of a stage needs, by the terms that it has there for a hop. `least`: units by the stage's least terms.
  // `slowest` becomes at most the samples/s that the stage may have there.
  template <class TermsFor>
  std::vector<Need> NeedsOf(const PossibleStage& s, int least, double x, TermsFor terms_for, double& slowest) const;

  const Problem& problem_;
  std::vector<PossibleStage> stages_;
  bool has_servers_ = false;
  TypeSet possible_ = 0;                             // types that a stage of a plan may be on
  std::vector<std::vector<Neighbours>> neighbours_;  // by possible type; empty without hops
  std::vector<Hop> worst_;                           // by type: no hop of its is larger in anything
  bool all_known_ = true;                            // all hops between possible types
  std::vector<TypeSet> no_worse_;                    // by type
};

// The least sum of weights to (or from) a layer, and the stage adjacent to that layer on this path; the caller defines
// the stage's number.
struct LeastSum {
  double least = std::numeric_limits<double>::infinity();
  int stage = -1;

  void Offer(double value, int of_stage) {
    if (!(value < least)) return;
    least = value;
    stage = of_stage;
  }
};

}  // namespace medley::sched

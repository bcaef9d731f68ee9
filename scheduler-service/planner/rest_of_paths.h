// The least weight of what follows each edge on paths through a stage graph, where neighbours must allow each other.
//
// Edges that allow all types meet at a layer as if it had no types. Only at layers where some edge does not, the least
// weight is kept by pair of types. Not thread-safe.
#pragma once

#include <algorithm>
#include <vector>

#include "scheduler-service/planner/stage_graph.h"

namespace medley::sched {

class RestOfPaths {
 public:
  RestOfPaths(int layers, int types)
      : types_(Index(types)), joints_(Index(layers) + 1), begin_(Index(layers) + 1), pairs_(joints_.size()) {}

  // `edges` are ordered by their first layer. An Edge is a StageEdge with a `weight`.
  template <class Edge>
  void Compute(const std::vector<Edge>& edges, const std::vector<Beside>& besides) {
    Begin();
    narrow_ = !besides.empty();
    if (narrow_) {
      for (const Edge& edge : edges) MarkEnds(edge, besides);
      AllocatePairs();
    }
    after_.assign(narrow_ ? edges.size() : 0, {});
    for (size_t i = edges.size(); i-- > 0;) {
      const Edge& edge = edges[i];
      if (narrow_) after_[i] = AfterEdge(edge, besides);
      const double weight = edge.weight + After(i, edge).least;
      begin_[Index(edge.first)].Offer(weight, static_cast<int>(i));
      if (narrow_) OfferToPairs(edge, besides, weight, static_cast<int>(i));
    }
  }

  // The least of whole paths; the stage is the index of the first edge.
  const LeastSum& Whole() const { return begin_.front(); }
  // The least of what follows edges[index]; the stage is the index of the next edge, -1 after the last one.
  const LeastSum& After(size_t index, const StageEdge& edge) const {
    return narrow_ ? after_[index] : begin_[Index(edge.last + 1)];
  }
  // True if some edge that begins with the layer does not allow all types before it.
  bool IsNarrow(int layer) const { return joints_[Index(layer)].before; }

 private:
  struct Joint {
    bool before = false;  // some edge that begins here does not allow all types
    bool after = false;   // some edge that ends here does not allow all types
  };
  // At a layer where a joint is narrow, by type. LeastSum of edges that begin there.
  struct Pairs {
    std::vector<LeastSum> any;      // [type of the edge]: of those that allow all types before them
    std::vector<LeastSum> some;     // [type before * types + type of the edge]: of the others
    std::vector<LeastSum> of_type;  // [type before]: of all that allow it; what follows an edge that allows all types
    std::vector<char> known;        // [type before]: of_type is
  };

  static size_t Index(int i) { return static_cast<size_t>(i); }

  void Begin() {
    std::ranges::fill(joints_, Joint{});
    std::ranges::fill(begin_, LeastSum{});
    begin_.back().least = 0;
  }
  static Beside BesideOf(const StageEdge& edge, const std::vector<Beside>& besides) {
    return edge.beside < 0 ? Beside{} : besides[Index(edge.beside)];
  }
  void MarkEnds(const StageEdge& edge, const std::vector<Beside>& besides) {
    const Beside beside = BesideOf(edge, besides);
    if (beside.before != kAllTypes) joints_[Index(edge.first)].before = true;
    if (beside.after != kAllTypes) joints_[Index(edge.last + 1)].after = true;
  }
  void AllocatePairs();
  LeastSum AfterEdge(const StageEdge& edge, const std::vector<Beside>& besides);
  void OfferToPairs(const StageEdge& edge, const std::vector<Beside>& besides, double weight, int index);

  const size_t types_;
  std::vector<Joint> joints_;    // by layer
  std::vector<LeastSum> begin_;  // by layer: of all edges that begin there
  std::vector<Pairs> pairs_;     // by layer
  bool narrow_ = false;          // some joint may be
  std::vector<LeastSum> after_;  // by edge, if narrow_
};

}  // namespace medley::sched

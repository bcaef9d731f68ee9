#include "scheduler-service/planner/stage_graph.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"
#include "scheduler-service/planner/layer_bound.h"

namespace medley::sched {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

absl::Status StageGraph::CheckSize(const Problem& problem) {
  const int64_t layers = problem.layers(), stages = layers * (layers + 1) / 2 * problem.types();
  if (stages <= kMostPossibleStages) return absl::OkStatus();
  return base::InvalidArgument(
      "model.layers: {} layers on {} resource types make {} possible stages, planner exact handles at most {}: merge "
      "layers that belong together, remove types that are more expensive and slower, or use planner greedy or rl-lstm",
      layers, problem.types(), stages, kMostPossibleStages);
}

template <class Found>
void StageGraph::ForEach(const Problem& problem, const StageSubset& subset, int most_stages, Found found) {
  const int layers = problem.layers();
  const auto ends_at = [&](int layer) { return subset.ends == nullptr || (*subset.ends)[Index(layer)] != 0; };
  const auto keeps = [&](int layer, int t) {
    return subset.schedule == nullptr || (*subset.schedule)[Index(layer)] == t;
  };
  for (int first = 0; first < layers; ++first) {
    if (!ends_at(first)) continue;
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.limit(t) < problem.min_units()) continue;
      double more = 0;  // than the bound of all plans, of those with the stage
      for (int last = first; last < layers && keeps(last, t) && problem.Allowed(first, last, t); ++last) {
        if (subset.bound != nullptr) {
          more += subset.bound->Excess(last, t);
          if (subset.bound->Excludes(more, subset.cutoff)) break;  // longer stages have more
        }
        if (!ends_at(last + 1) || (most_stages == 1 && last - first + 1 < layers)) continue;
        if (!found(first, last, t)) return;
      }
    }
  }
}

int64_t StageGraph::Count(const Problem& problem, const StageSubset& subset, int64_t enough) {
  int64_t count = 0;
  bool spent = false;
  ForEach(problem, subset, 0, [&](int, int, int) {
    // Every 1,024 stages, because looking at the clock takes longer than counting one.
    spent = ++count % 1024 == 0 && subset.budget != nullptr && subset.budget->Spent();
    return !spent && count <= enough;
  });
  return spent ? std::max(count, enough + 1) : count;
}

StageGraph::StageGraph(const Problem& problem, const StageSubset& subset, int most_stages) : problem_(problem) {
  const int types = problem.types();
  constexpr int kMost = std::numeric_limits<TypeSet>::digits;
  MEDLEY_CHECK(types <= kMost, "more types than a set has");
  if (subset.schedule == nullptr) {
    possible_ = kAllTypes >> (kMost - types);
  } else {
    for (const int t : *subset.schedule) possible_ |= TypeSet{1} << t;
  }
  FindNeighbours();
  ForEach(problem, subset, most_stages, [&](int first, int last, int t) {
    PossibleStage s{first, last, t};
    s.terms = problem.LeastTerms(first, last, t);
    s.load = problem.Servers(first, last, t);
    s.slowest = problem.Throughput(s.terms, problem.min_units());
    s.fastest = problem.Throughput(s.terms, problem.limit(t));
    has_servers_ = has_servers_ || s.load.any;
    stages_.push_back(s);
    return true;
  });
}

std::vector<int> StageGraph::All() const {
  std::vector<int> all(stages_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Groups the possible types by what their boundaries with each type cost.
void StageGraph::FindNeighbours() {
  if (!problem_.has_hops()) return;
  const int types = problem_.types();
  neighbours_.resize(Index(types));
  worst_.resize(Index(types));
  bool alike = true;
  const Hop first = problem_.HopBetween(std::countr_zero(possible_), std::countr_zero(possible_));
  for (int t = 0; t < types; ++t) {
    if (!Has(possible_, t)) continue;
    std::vector<Neighbours>& groups = neighbours_[Index(t)];
    Hop& worst = worst_[Index(t)];
    for (int other = 0; other < types; ++other) {
      if (!Has(possible_, other)) continue;
      const Hop hop = problem_.HopBetween(t, other);
      auto group = std::ranges::find(groups, hop, &Neighbours::hop);
      if (group == groups.end()) group = groups.insert(group, {hop, 0});
      group->types |= TypeSet{1} << other;
      alike = alike && hop == first;
      all_known_ = all_known_ && hop.known;
      worst = {worst.known || hop.known, std::max(worst.latency, hop.latency),
               std::max(worst.seconds_per_byte, hop.seconds_per_byte)};
    }
  }
  if (alike) return;
  no_worse_.assign(Index(types), 0);
  for (int t = 0; t < types; ++t) {
    for (int other = 0; other < types; ++other) {
      if (IsNoWorse(t, other)) no_worse_[Index(t)] |= TypeSet{1} << other;
    }
  }
}

bool StageGraph::IsNoWorse(int type, int other) const {
  for (int t = 0; t < problem_.types(); ++t) {
    if (!Has(possible_, t)) continue;
    const Hop a = problem_.HopBetween(type, t), b = problem_.HopBetween(other, t);
    if (a.known && !(b.known && a.latency <= b.latency && a.seconds_per_byte <= b.seconds_per_byte)) return false;
  }
  return true;
}

template <class TermsFor>
std::vector<StageGraph::Need> StageGraph::NeedsOf(const PossibleStage& s, int least, double x, TermsFor terms_for,
                                                  double& slowest) const {
  double here = problem_.Throughput(terms_for(worst_[Index(s.type)]), least);
  if (!all_known_) here = std::min(here, problem_.Throughput(terms_for(Hop{}), least));
  if (here >= x) {  // enough beside all types
    slowest = std::min(slowest, here);
    return {{least, kAllTypes}};
  }
  std::vector<Need> needs;
  for (const Neighbours& group : neighbours_[Index(s.type)]) {
    const StageTerms terms = terms_for(group.hop);
    const int units = problem_.MinUnits(terms, x, problem_.limit(s.type));
    if (units == 0) continue;
    needs.push_back({units, group.types});
    slowest = std::min(slowest, problem_.Throughput(terms, units));
  }
  return needs;
}

double StageGraph::AddEdges(int i, double x, std::vector<StageEdge>& edges, std::vector<Beside>& besides) const {
  const PossibleStage& s = stage(i);
  const int least = UnitsAt(i, x);
  if (least == 0) return kInfinity;
  StageEdge edge{i, s.first, s.last, s.type, least};
  double slowest = ThroughputOf(i, least);
  if (neighbours_.empty()) {
    edges.push_back(edge);
    return slowest;
  }
  const auto before = [&](const Hop& hop) { return problem_.TermsBefore(s.terms, s.first, hop); };
  const auto after = [&](const Hop& hop) { return problem_.TermsAfter(s.terms, s.last, s.type, hop); };
  const std::vector<Need> any = {{least, kAllTypes}};
  const std::vector<Need> needs_before = s.first > 0 ? NeedsOf(s, least, x, before, slowest) : any;
  const std::vector<Need> needs_after = s.last + 1 < problem_.layers() ? NeedsOf(s, least, x, after, slowest) : any;
  std::vector<int> units;
  for (const Need& need : needs_before) units.push_back(need.units);
  for (const Need& need : needs_after) units.push_back(need.units);
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  const auto enough = [&](const std::vector<Need>& needs) {
    TypeSet types = 0;
    for (const Need& need : needs) types |= need.units <= edge.units ? need.types : 0;
    return (types & possible_) == possible_ ? kAllTypes : types;
  };
  const size_t first = edges.size();
  for (const int k : units) {
    edge.units = k;
    const Beside beside = {enough(needs_before), enough(needs_after)};
    if (beside.before == 0 || beside.after == 0) continue;
    const bool all = beside.before == kAllTypes && beside.after == kAllTypes;
    edge.beside = all ? -1 : static_cast<int>(besides.size());
    if (!all) besides.push_back(beside);
    edges.push_back(edge);
  }
  return edges.size() > first ? slowest : kInfinity;
}

bool StageGraph::RunsAtBefore(const StageEdge& edge, int type_before, double x) const {
  const Hop hop = problem_.HopBetween(type_before, edge.type);
  return problem_.Throughput(problem_.TermsBefore(stage(edge.stage).terms, edge.first, hop), edge.units) == x;
}

bool StageGraph::RunsAtAfter(const StageEdge& edge, int type_after, double x) const {
  const Hop hop = problem_.HopBetween(edge.type, type_after);
  return problem_.Throughput(problem_.TermsAfter(stage(edge.stage).terms, edge.last, edge.type, hop), edge.units) == x;
}

int StageGraph::UnitsAt(int i, double x) const {
  const PossibleStage& s = stage(i);
  if (x > s.fastest) return 0;
  if (x <= s.slowest) return problem_.min_units();
  // The closed formula is exact except for rounding.
  const double seconds = problem_.batch() / x;
  const StageTerms& terms = s.terms;
  const double compute = terms.compute_parallel > 0 ? terms.compute_parallel / (seconds - terms.compute_serial) : 0;
  const double comm = terms.comm_parallel > 0 ? terms.comm_parallel / (seconds - terms.comm_serial) : 0;
  const double guess = std::ceil(std::max(compute, comm));
  if (guess > problem_.min_units() && guess <= problem_.limit(s.type)) {
    const int units = static_cast<int>(guess);
    if (problem_.Throughput(s.terms, units) >= x && problem_.Throughput(s.terms, units - 1) < x) return units;
  }
  return problem_.MinUnits(s.terms, x, problem_.limit(s.type));
}

double StageGraph::SlowestThroughput() const {
  double slowest = kInfinity;
  for (const PossibleStage& s : stages_) {
    slowest = std::min(slowest, s.slowest);
    if (neighbours_.empty()) continue;
    const auto at_least_units = [&](const StageTerms& terms) {
      slowest = std::min(slowest, problem_.Throughput(terms, problem_.min_units()));
    };
    const Hop& worst = worst_[Index(s.type)];
    if (s.first > 0) at_least_units(problem_.TermsBefore(s.terms, s.first, worst));
    if (s.last + 1 == problem_.layers()) continue;
    at_least_units(problem_.TermsAfter(s.terms, s.last, s.type, worst));
    if (!all_known_) at_least_units(problem_.TermsAfter(s.terms, s.last, s.type, {}));
  }
  return slowest;
}

double StageGraph::FastestThroughput() const {
  // Each layer is in some stage, which computes at least that layer. Communication and messages may be less in a longer
  // stage.
  double fastest = kInfinity;
  for (int layer = 0; layer < problem_.layers(); ++layer) {
    double here = 0;
    for (int t = 0; t < problem_.types(); ++t) {
      if (!problem_.Allowed(layer, layer, t) || problem_.limit(t) < problem_.min_units()) continue;
      here = std::max(here, problem_.Throughput(problem_.ComputeTerms(layer, t), problem_.limit(t)));
    }
    fastest = std::min(fastest, here);
  }
  return fastest * (1 + 1e-9);  // tolerance for rounding in longer stages
}

}  // namespace medley::sched

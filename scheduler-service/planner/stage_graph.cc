#include "scheduler-service/planner/stage_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/status.h"
#include "scheduler-service/cost/problem.h"

namespace medley::sched {
absl::Status StageGraph::CheckSize(const Problem& problem) {
  const int64_t layers = problem.layers(), stages = layers * (layers + 1) / 2 * problem.types();
  if (stages <= kMostPossibleStages) return absl::OkStatus();
  return base::InvalidArgument(
      "model.layers: {} layers on {} resource types make {} possible stages, planner exact handles at most {}: merge "
      "layers that belong together, remove types that are more expensive and slower, or use planner greedy or rl-lstm",
      layers, problem.types(), stages, kMostPossibleStages);
}

StageGraph::StageGraph(const Problem& problem, const std::vector<int>* schedule, int most_stages) : problem_(problem) {
  const auto keeps = [&](int layer, int t) {
    return schedule == nullptr || (*schedule)[static_cast<size_t>(layer)] == t;
  };
  const int layers = problem.layers();
  for (int first = 0; first < layers; ++first) {
    for (int t = 0; t < problem.types(); ++t) {
      if (problem.limit(t) < problem.min_units()) continue;
      for (int last = first; last < layers && keeps(last, t) && problem.Allowed(first, last, t); ++last) {
        if (most_stages == 1 && last - first + 1 < layers) continue;
        PossibleStage s{first, last, t};
        s.terms = problem.Terms(first, last, t);
        s.load = problem.Servers(first, last, t);
        s.slowest = problem.Throughput(s.terms, problem.min_units());
        s.fastest = problem.Throughput(s.terms, problem.limit(t));
        has_servers_ = has_servers_ || s.load.any;
        stages_.push_back(s);
      }
    }
  }
}

std::vector<int> StageGraph::All() const {
  std::vector<int> all(stages_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
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
  for (const PossibleStage& s : stages_) slowest = std::min(slowest, s.slowest);
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

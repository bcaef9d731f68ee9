#include <algorithm>
#include <cmath>

#include "common/model/model.h"
#include "scheduler-service/pipeline/stage_tables.h"

namespace medley::sched {
namespace {

using Set = StageTables::Set;
using State = StageTables::State;

// The part of the computation of any operation that is certainly not the update.
double LeastPasses(const DeviceProblem& problem) {
  double least = 1;
  for (const model::Layer& layer : problem.profile().model.layers) {
    for (const model::LayerProfile& times : layer.profiles) least = std::min(least, 1 - times.update_part);
  }
  return std::max(0.0, least);
}

double LeastLatency(const DeviceProblem& problem, const StageTables& tables, Set from, Set to) {
  double least = kForever;
  for (const int a : tables.Members(from)) {
    for (const int b : tables.Members(to)) {
      least = std::min(least, problem.Link(a, b).latency_seconds + problem.Link(b, a).latency_seconds);
    }
  }
  return least;
}

}  // namespace

double SimulatedBound(const DeviceProblem& problem, StageTables& tables) {
  const int pieces = tables.pieces();
  const Set all = tables.all();
  std::vector<double> values(tables.states(), kForever);
  std::vector<std::vector<State>> reached(static_cast<size_t>(pieces) + 1);
  const bool synchronous = !problem.asynchronous();
  const double micros = problem.micro_batches(), samples = problem.samples();
  const double passes = synchronous ? LeastPasses(problem) : 1;
  const double fill = synchronous ? passes * std::floor(samples / micros) / samples : 0;
  const auto extend = [&](const State& after, int end, Set set) {
    const State state{after.used | set, set};
    if (!tables.ordered(state.used)) return;
    const bool last = end == pieces;
    const double next = last ? 0 : values[tables.StateAt(end, after)];
    const double latency = last || !synchronous ? 0 : LeastLatency(problem, tables, set, after.first);
    for (int p = end - 1; p >= 0; --p) {
      const double least = tables.LeastComputes(p, end, set);
      if (least == kForever) continue;
      // The whole model is no pipeline, and computes its samples in one piece.
      const double own = p == 0 && last ? least : passes * least;
      const double through = last ? 0 : synchronous ? fill * least + latency + next : next;
      const double seconds = std::max({own, through, tables.Reduces(p, end, set)});
      double& value = values[tables.StateAt(p, state)];
      if (seconds >= value) continue;
      if (value == kForever) reached[static_cast<size_t>(p)].push_back(state);
      value = seconds;
    }
  };
  for (int end = pieces; end > 0; --end) {
    if (end == pieces) {
      for (Set set = 1; set <= all; ++set) extend({}, end, set);
      continue;
    }
    const std::vector<State> states = reached[static_cast<size_t>(end)];
    for (const State& state : states) {
      if (tables.Stopped()) return 0;
      const Set rest = all & ~state.used;
      for (Set set = rest; set > 0; set = (set - 1) & rest) extend(state, end, set);
    }
  }
  double least = kForever;
  for (const State& state : reached[0]) least = std::min(least, values[tables.StateAt(0, state)]);
  return least == kForever ? 0 : least * (1 - 1e-9);
}

}  // namespace medley::sched

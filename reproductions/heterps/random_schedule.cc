#include "reproductions/heterps/random_schedule.h"

#include <algorithm>

namespace medley::reproductions::heterps {
namespace {

int Any(const std::vector<int>& types, base::Rng& rng) { return types[rng.Below(types.size())]; }

bool Has(const std::vector<int>& types, int t) { return std::find(types.begin(), types.end(), t) != types.end(); }

}  // namespace

std::vector<std::vector<int>> TypesByLayer(const sched::Problem& problem) {
  std::vector<std::vector<int>> types(static_cast<size_t>(problem.layers()));
  for (int layer = 0; layer < problem.layers(); ++layer) {
    std::vector<int>& here = types[static_cast<size_t>(layer)];
    std::vector<int> profiled;
    for (int t = 0; t < problem.types(); ++t) {
      if (!problem.Profiled(layer, t)) continue;
      profiled.push_back(t);
      if (problem.limit(t) > 0 && problem.Allowed(layer, layer, t)) here.push_back(t);
    }
    if (here.empty()) here = profiled;
  }
  return types;
}

std::vector<int> RandomSchedule(const std::vector<std::vector<int>>& types, double switches, base::Rng& rng) {
  const double change = std::min(0.5, switches / static_cast<double>(types.size()));
  std::vector<int> schedule;
  for (const std::vector<int>& here : types) {
    const bool keep = !schedule.empty() && rng.Uniform() >= change && Has(here, schedule.back());
    schedule.push_back(keep ? schedule.back() : Any(here, rng));
  }
  return schedule;
}

void Mutate(const std::vector<std::vector<int>>& types, double rate, base::Rng& rng, std::vector<int>& schedule) {
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (rng.Uniform() >= rate) continue;
    const size_t from = rng.Below(3);  // 0: the previous layer's type, 1: the next layer's, 2: any type
    int t = -1;
    if (from == 0 && i > 0) t = schedule[i - 1];
    if (from == 1 && i + 1 < schedule.size()) t = schedule[i + 1];
    schedule[i] = t >= 0 && Has(types[i], t) ? t : Any(types[i], rng);
  }
}

}  // namespace medley::reproductions::heterps

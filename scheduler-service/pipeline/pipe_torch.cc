// Pipe-torch: devices by bandwidth, a stage each.
#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler-service/pipeline/baselines.h"

namespace medley::sched {
namespace {

double Bandwidth(const DeviceProblem& problem, int a, int b) {
  const double rate = problem.Link(a, b).bytes_per_second;
  return rate > 0 ? rate : 1e18;  // no limit
}

std::vector<int> ByBandwidth(const DeviceProblem& problem) {
  std::vector<int> left(static_cast<size_t>(problem.devices()));
  std::iota(left.begin(), left.end(), 0);
  const auto sum = [&](int d) {
    double rates = 0;
    for (int other = 0; other < problem.devices(); ++other) rates += other == d ? 0 : Bandwidth(problem, d, other);
    return rates;
  };
  std::vector<int> order;
  while (!left.empty()) {
    const auto next =
        order.empty() ? std::ranges::max_element(left, {}, sum)
                      : std::ranges::max_element(left, {}, [&](int d) { return Bandwidth(problem, order.back(), d); });
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace

std::vector<PipelineStage> PipeTorch(const DeviceProblem& problem) {
  const std::vector<int> order = ByBandwidth(problem);
  std::vector<int> bounds = {0};
  bounds.insert(bounds.end(), problem.cuts().begin(), problem.cuts().end());
  bounds.push_back(problem.layers());
  const auto work = [&](size_t i, size_t j) {  // the mean over devices: they count as equally fast
    double seconds = 0;
    for (const int d : order) seconds += problem.WorkOf(bounds[i], bounds[j], d).At(1) / problem.devices();
    return seconds;
  };
  // best[s][j]: the slowest of s stages on the first s devices up to boundary j.
  const size_t most = std::min(order.size(), bounds.size() - 1);
  struct Entry {
    double seconds = kForever;
    size_t first = 0;
  };
  std::vector<std::vector<Entry>> best(most + 1, std::vector<Entry>(bounds.size()));
  for (size_t j = 1; j < bounds.size(); ++j) best[1][j] = {work(0, j), 0};
  for (size_t s = 2; s <= most; ++s) {
    for (size_t j = s; j < bounds.size(); ++j) {
      for (size_t i = s - 1; i < j; ++i) {
        const double moves = problem.CutBytes(bounds[i]) / Bandwidth(problem, order[s - 2], order[s - 1]);
        const double seconds = std::max({best[s - 1][i].seconds, moves, work(i, j)});
        if (seconds < best[s][j].seconds) best[s][j] = {seconds, i};
      }
    }
  }
  std::vector<PipelineStage> stages;
  size_t j = bounds.size() - 1;
  for (size_t s = most; s > 0; --s) {  // it uses all devices
    const size_t i = best[s][j].first;
    stages.push_back({bounds[i], bounds[j], {order[s - 1]}});
    j = i;
  }
  std::ranges::reverse(stages);
  return stages;
}

}  // namespace medley::sched

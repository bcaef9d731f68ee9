#include "scheduler-service/graph/grouping.h"

#include <algorithm>
#include <numeric>
#include <queue>

namespace medley::sched {
namespace {

// The group of each operation, by breadth-first search from all centres at once.
std::vector<int> NearestCentre(const std::vector<std::vector<int>>& neighbours, const std::vector<int>& centres) {
  std::vector<int> nearest(neighbours.size(), -1);
  std::queue<int> next;
  for (size_t c = 0; c < centres.size(); ++c) {
    nearest[static_cast<size_t>(centres[c])] = static_cast<int>(c);
    next.push(centres[c]);
  }
  while (!next.empty()) {
    const auto at = static_cast<size_t>(next.front());
    next.pop();
    for (const int other : neighbours[at]) {
      if (nearest[static_cast<size_t>(other)] >= 0) continue;
      nearest[static_cast<size_t>(other)] = nearest[at];
      next.push(other);
    }
  }
  for (size_t i = 0; i < nearest.size(); ++i) {
    if (nearest[i] < 0) nearest[i] = i > 0 ? nearest[i - 1] : 0;
  }
  return nearest;
}

}  // namespace

OperationGroups GroupOperations(const DeviceProblem& problem, int most) {
  const int operations = problem.layers();
  std::vector<double> seconds(static_cast<size_t>(operations), 0);
  std::vector<std::vector<int>> neighbours(static_cast<size_t>(operations));
  for (int i = 0; i < operations; ++i) {
    for (int d = 0; d < problem.devices(); ++d) seconds[static_cast<size_t>(i)] += problem.WorkOf(i, i + 1, d).At(1);
    for (const int input : problem.inputs(i)) {
      neighbours[static_cast<size_t>(i)].push_back(input);
      neighbours[static_cast<size_t>(input)].push_back(i);
    }
  }
  std::vector<int> centres(static_cast<size_t>(operations));
  std::iota(centres.begin(), centres.end(), 0);
  std::ranges::stable_sort(centres, std::greater(), [&](int i) { return seconds[static_cast<size_t>(i)]; });
  centres.resize(static_cast<size_t>(std::clamp(most, 1, operations)));
  const std::vector<int> nearest = NearestCentre(neighbours, centres);

  OperationGroups out;
  out.group_of.resize(static_cast<size_t>(operations));
  std::vector<int> number(centres.size(), -1);  // of the groups, in the order of their first operation
  for (int i = 0; i < operations; ++i) {
    int& group = number[static_cast<size_t>(nearest[static_cast<size_t>(i)])];
    if (group < 0) {
      group = out.count();
      out.members.emplace_back();
    }
    out.group_of[static_cast<size_t>(i)] = group;
    out.members[static_cast<size_t>(group)].push_back(i);
  }
  return out;
}

}  // namespace medley::sched

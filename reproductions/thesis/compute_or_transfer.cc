#include "reproductions/thesis/compute_or_transfer.h"

#include <algorithm>
#include <cmath>

namespace medley::reproductions::thesis {

double SharedByPower(int slow, double ratio, double transfer) {
  const double parts = ratio + slow;  // of power: the fast node has `ratio` of them, each slow one 1
  return std::max(ratio / parts, (ratio + (slow > 0 ? transfer : 0)) / parts);
}

double SharedByTime(int slow, double ratio, double transfer) { return 1 / (1 + slow / (ratio + transfer)); }

double BothOnFast(double r) { return r + 1; }

double FirstOnSlow(double r, int slow, double ratio, double transfer) { return std::max(r, (ratio + transfer) / slow); }

double LeastRatio(int slow, double ratio, double transfer) { return (ratio + transfer) / slow - 1; }

double PrintedOneGroup(const NodeGroup& group, int jobs) {
  return group.seconds * (static_cast<double>(jobs) / group.nodes + 1);
}

double OneGroup(const NodeGroup& group, int jobs) {
  return group.seconds * std::ceil(static_cast<double>(jobs) / group.nodes);
}

double PrintedGroups(const std::vector<int>& nodes, double magnitude, double transfer, double jobs) {
  const auto groups = static_cast<double>(nodes.size());
  double costs = groups * transfer, power = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    costs += std::pow(magnitude, static_cast<double>(i + 1));
    power += nodes[i] * std::pow(magnitude, groups - static_cast<double>(i + 1));
  }
  return costs * jobs / power;
}

double Groups(const std::vector<NodeGroup>& groups, double jobs) {
  double rate = 0;
  for (const NodeGroup& group : groups) rate += group.nodes / group.seconds;
  return jobs / rate;
}

}  // namespace medley::reproductions::thesis

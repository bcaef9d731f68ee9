#include "scheduler-service/hierarchy/groups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace medley::sched {
namespace {

// Disjoint sets of positions.
class Sets {
 public:
  explicit Sets(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  size_t Find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void Join(size_t a, size_t b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<size_t> parent_;
};

Grouping Sorted(Grouping groups) {
  std::erase_if(groups, [](const std::vector<int>& group) { return group.empty(); });
  for (std::vector<int>& group : groups) std::ranges::sort(group);
  std::ranges::sort(groups);
  return groups;
}

}  // namespace

int Magnitude(double cost, double least) {
  if (!(cost > 0) || !(least > 0)) return 0;
  return static_cast<int>(std::lround(std::log10(cost / least)));
}

std::vector<Grouping> GroupsByLinks(const std::vector<int>& devices, const std::function<double(int, int)>& costs) {
  const size_t n = devices.size();
  if (n < 2) return {Sorted({devices})};
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> between(n * n, 0);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) {
      between[a * n + b] = costs(devices[a], devices[b]);
      if (between[a * n + b] > 0) least = std::min(least, between[a * n + b]);
    }
  }
  std::map<int, std::vector<std::pair<size_t, size_t>>> by_magnitude;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a + 1; b < n; ++b) by_magnitude[Magnitude(between[a * n + b], least)].emplace_back(a, b);
  }
  std::vector<Grouping> out;
  Sets sets(n);
  for (const auto& [magnitude, pairs] : by_magnitude) {
    for (const auto& [a, b] : pairs) sets.Join(a, b);
    std::map<size_t, std::vector<int>> groups;
    for (size_t i = 0; i < n; ++i) groups[sets.Find(i)].push_back(devices[i]);
    Grouping grouping;
    for (auto& [root, group] : groups) grouping.push_back(std::move(group));
    grouping = Sorted(std::move(grouping));
    if (out.empty() || out.back() != grouping) out.push_back(std::move(grouping));
  }
  return out;
}

Grouping DividedByPower(const Grouping& groups, const std::function<double(int)>& seconds) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<int>& group : groups) {
    for (const int d : group) least = std::min(least, seconds(d));
  }
  Grouping out;
  for (const std::vector<int>& group : groups) {
    std::map<int, std::vector<int>> by_magnitude;
    for (const int d : group) by_magnitude[Magnitude(seconds(d), least)].push_back(d);
    for (auto& [magnitude, members] : by_magnitude) out.push_back(std::move(members));
  }
  return Sorted(std::move(out));
}

Grouping EqualPower(const std::vector<int>& devices, int count, const std::function<double(int)>& seconds) {
  std::vector<int> order = devices;
  std::ranges::sort(order, [&](int a, int b) { return std::pair(seconds(a), a) < std::pair(seconds(b), b); });
  const auto groups = static_cast<size_t>(std::clamp<int>(count, 1, static_cast<int>(devices.size())));
  Grouping out(groups);
  std::set<std::pair<double, size_t>> by_power;  // the weakest group first
  for (size_t g = 0; g < groups; ++g) by_power.emplace(0, g);
  for (const int d : order) {
    const auto [power, g] = *by_power.begin();
    by_power.erase(by_power.begin());
    out[g].push_back(d);
    by_power.emplace(power + 1 / std::max(seconds(d), 1e-12), g);
  }
  return Sorted(std::move(out));
}

Grouping RandomGroups(const std::vector<int>& devices, int count, base::Rng& rng) {
  std::vector<int> order = devices;
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  const auto groups = static_cast<size_t>(std::clamp<int>(count, 1, static_cast<int>(devices.size())));
  Grouping out(groups);
  for (size_t i = 0; i < order.size(); ++i) out[i * groups / order.size()].push_back(order[i]);
  return Sorted(std::move(out));
}

}  // namespace medley::sched

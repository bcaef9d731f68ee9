#include "scheduler-service/hierarchy/ring_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler-service/devices/problem.h"

namespace medley::sched {
namespace {

// Held and Karp's dynamic program, with the longest edge instead of the sum.
std::vector<int> ExactRing(const std::vector<int>& devices, const MessageCost& cost) {
  const size_t n = devices.size(), subsets = size_t{1} << (n - 1);  // of all but the first
  struct Best {
    double longest = kForever;
    size_t before = 0;
  };
  std::vector<Best> best(subsets * n);
  const auto at = [&](size_t set, size_t last) -> Best& { return best[set * n + last]; };
  for (size_t last = 1; last < n; ++last) at(size_t{1} << (last - 1), last) = {cost(devices[0], devices[last]), 0};
  for (size_t set = 1; set < subsets; ++set) {
    for (size_t last = 1; last < n; ++last) {
      const double longest = at(set, last).longest;
      if (longest == kForever) continue;
      for (size_t next = 1; next < n; ++next) {
        const size_t bit = size_t{1} << (next - 1);
        if ((set & bit) != 0) continue;
        const double with = std::max(longest, cost(devices[last], devices[next]));
        if (with < at(set | bit, next).longest) at(set | bit, next) = {with, last};
      }
    }
  }
  size_t set = subsets - 1, last = 1;
  double least = kForever;
  for (size_t end = 1; end < n; ++end) {
    const double whole = std::max(at(set, end).longest, cost(devices[end], devices[0]));
    if (whole < least) {
      least = whole;
      last = end;
    }
  }
  std::vector<int> ring;
  while (last != 0) {
    ring.push_back(devices[last]);
    const size_t before = at(set, last).before;
    set &= ~(size_t{1} << (last - 1));
    last = before;
  }
  ring.push_back(devices[0]);
  std::ranges::reverse(ring);
  return ring;
}

std::vector<int> NearestNeighbours(const std::vector<int>& devices, const MessageCost& cost) {
  std::vector<int> ring = {devices.front()}, left(devices.begin() + 1, devices.end());
  while (!left.empty()) {
    const auto nearest = std::ranges::min_element(left, {}, [&](int d) { return cost(ring.back(), d); });
    ring.push_back(*nearest);
    left.erase(nearest);
  }
  return ring;
}

// Reverses a part of the ring that removes its slowest link (2-opt), while that makes the ring's longest message
// shorter, or as long with fewer of them.
void Improve(const MessageCost& cost, std::vector<int>& ring) {
  const size_t n = ring.size();
  const auto edge = [&](size_t i, size_t j) { return cost(ring[i % n], ring[j % n]); };
  for (size_t round = 0; round < 4 * n; ++round) {
    size_t slowest = 0;
    for (size_t i = 1; i < n; ++i) {
      if (edge(i, i + 1) > edge(slowest, slowest + 1)) slowest = i;
    }
    const double longest = edge(slowest, slowest + 1);
    double best = longest;
    size_t with = n;
    for (size_t j = 0; j < n; ++j) {
      if (j == slowest || (j + 1) % n == slowest || j == (slowest + 1) % n) continue;
      // The links slowest -> slowest + 1 and j -> j + 1 become slowest -> j and slowest + 1 -> j + 1.
      const double added = std::max({edge(slowest, j), edge(slowest + 1, j + 1), edge(j, j + 1)});
      if (added < best) {
        best = added;
        with = j;
      }
    }
    if (with == n) return;
    std::rotate(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>((slowest + 1) % n), ring.end());
    const size_t length = (with + n - (slowest + 1) % n) % n + 1;
    std::reverse(ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(length));
  }
}

}  // namespace

double RingBottleneck(const std::vector<int>& ring, const MessageCost& cost) {
  double longest = 0;
  for (size_t i = 0; i < ring.size() && ring.size() > 1; ++i) {
    longest = std::max(longest, cost(ring[i], ring[(i + 1) % ring.size()]));
  }
  return longest;
}

std::vector<int> RingOrder(const std::vector<int>& devices, const MessageCost& cost) {
  if (devices.size() < 4) return devices;  // of three, the order only changes directions
  if (devices.size() <= kExactRing) return ExactRing(devices, cost);
  std::vector<int> ring = NearestNeighbours(devices, cost);
  Improve(cost, ring);
  const auto first = std::ranges::find(ring, devices.front());
  std::rotate(ring.begin(), first, ring.end());
  if (RingBottleneck(ring, cost) <= RingBottleneck(devices, cost)) return ring;
  return devices;
}

}  // namespace medley::sched

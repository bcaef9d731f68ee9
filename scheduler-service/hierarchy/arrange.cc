#include "scheduler-service/hierarchy/arrange.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/model/allreduce.h"
#include "scheduler-service/devices/shares.h"
#include "scheduler-service/hierarchy/ring_order.h"

namespace medley::sched {
namespace {

using model::AllreduceAlgorithm;
using enum model::AllreduceAlgorithm;

constexpr size_t kThreeLevels = 27;  // devices
constexpr int kLeaderRounds = 3;

// Arrangements of one allreduce.
class Arranger {
 public:
  Arranger(const DeviceProblem& problem, double bytes) : problem_(problem), bytes_(bytes) {}

  double Message(int from, int to, double bytes) const {
    const model::LinkSpeed& link = problem_.Link(from, to);
    return link.latency_seconds + (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
  }
  double Cost(int a, int b) const { return std::max(Message(a, b, bytes_), Message(b, a, bytes_)); }  // both ways
  double SampleSeconds(int d) const { return problem_.WorkOf(0, problem_.layers(), d).variable / problem_.samples(); }

  std::vector<int> Ring(const std::vector<int>& devices) const {
    const double part = bytes_ / static_cast<double>(devices.size());
    return RingOrder(devices, [&](int a, int b) { return Message(a, b, part); });
  }

  // One group of all, in the order and with the algorithm that are fastest.
  Arrangement Flat(const std::vector<int>& devices) const {
    Arrangement best{.order = Ring(devices), .levels = {}, .algorithms = {kRing}};
    best.seconds = Seconds(best);
    if (devices.size() < 2) return best;
    const std::vector<int> ring = best.order;
    const auto offer = [&](std::vector<int> order, AllreduceAlgorithm algorithm) {
      Arrangement one{.order = std::move(order), .levels = {}, .algorithms = {algorithm}};
      one.seconds = Seconds(one);
      if (one.seconds < best.seconds) best = std::move(one);
    };
    offer(ring, kRecursiveDoubling);
    offer(RootFirst(ring), kCentralized);
    offer(SlowestLinkLast(ring), kLinear);
    return best;
  }

  // Groups whose leaders add as `among(leaders)` says.
  template <typename Among>
  Arrangement Grouped(const Grouping& groups, const Among& among) const {
    std::vector<std::vector<int>> rings;
    for (const std::vector<int>& group : groups) rings.push_back(Ring(group));
    ChooseLeaders(rings);
    std::vector<int> leaders;
    std::map<int, const std::vector<int>*> group_of;
    for (const std::vector<int>& ring : rings) {
      leaders.push_back(ring.front());
      group_of[ring.front()] = &ring;
    }
    const Arrangement outer = among(leaders);
    Arrangement out;
    Grouping level;
    for (const int leader : outer.order) {
      out.order.insert(out.order.end(), group_of[leader]->begin(), group_of[leader]->end());
      level.push_back(*group_of[leader]);
    }
    out.levels.push_back(std::move(level));
    for (const Grouping& above : outer.levels) {
      Grouping& expanded = out.levels.emplace_back();
      for (const std::vector<int>& leaders_of_group : above) {
        std::vector<int>& group = expanded.emplace_back();
        for (const int leader : leaders_of_group) {
          group.insert(group.end(), group_of[leader]->begin(), group_of[leader]->end());
        }
      }
    }
    out.algorithms = outer.algorithms;
    out.algorithms.insert(out.algorithms.begin(), kRing);
    ChooseInner(out);
    return out;
  }
  Arrangement TwoLevels(const Grouping& groups) const {
    return Grouped(groups, [&](const std::vector<int>& leaders) { return Flat(leaders); });
  }

  // The groups of some way to form them, in two levels, and in three where the leaders are many.
  void Offer(const Grouping& groups, Arrangement& best) const {
    if (groups.size() < 2) return;
    const auto offer = [&](Arrangement one) {
      if (one.seconds < best.seconds) best = std::move(one);
    };
    offer(TwoLevels(groups));
    if (groups.size() < kThreeLevels / 3) return;
    offer(Grouped(groups, [&](const std::vector<int>& leaders) {
      const Arrangement flat = Flat(leaders);
      return TwoLevels(Chunks(flat.order, Root(flat.order.size())));
    }));
  }

  static size_t Root(size_t n) { return std::max<size_t>(2, static_cast<size_t>(std::lround(std::sqrt(n)))); }

  // Neighbours of a ring form groups of about `size`.
  static Grouping Chunks(const std::vector<int>& ring, size_t size) {
    const size_t count = std::max<size_t>(1, (ring.size() + size / 2) / size);
    Grouping groups(count);
    for (size_t i = 0; i < ring.size(); ++i) groups[i * count / ring.size()].push_back(ring[i]);
    return groups;
  }

  // Groups larger than about sqrt(n) are divided into neighbours of their ring.
  Grouping Limited(const Grouping& groups, size_t size) const {
    Grouping out;
    for (const std::vector<int>& group : groups) {
      if (group.size() < 2 * size) {
        out.push_back(group);
        continue;
      }
      for (std::vector<int>& chunk : Chunks(Ring(group), size)) out.push_back(std::move(chunk));
    }
    return out;
  }

  std::vector<Grouping> ByLinks(const std::vector<int>& devices) const {
    return GroupsByLinks(devices, [&](int a, int b) { return Cost(a, b); });
  }
  Grouping ByPower(const Grouping& groups) const {
    return DividedByPower(groups, [&](int d) { return SampleSeconds(d); });
  }
  Grouping Equal(const std::vector<int>& devices) const {
    return EqualPower(devices, static_cast<int>(Root(devices.size())), [&](int d) { return SampleSeconds(d); });
  }
  // By pool, machine or location.
  template <typename Name>
  Grouping By(const std::vector<int>& devices, const Name& name) const {
    std::map<std::string, std::vector<int>> groups;
    for (const int d : devices) groups[name(problem_.device(d))].push_back(d);
    Grouping out;
    for (auto& [key, group] : groups) out.push_back(std::move(group));
    return out;
  }

  double Seconds(const Arrangement& arrangement) const {
    const std::vector<int>& order = arrangement.order;
    std::vector<model::ReduceLevel> levels;
    std::vector<int> position(static_cast<size_t>(problem_.devices()), -1);
    for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i])] = static_cast<int>(i);
    std::vector<bool> takes_part(order.size(), true);
    for (size_t l = 0; l < arrangement.levels.size(); ++l) {
      model::ReduceLevel& level = levels.emplace_back();
      level.algorithm = arrangement.algorithms[l];
      std::vector<bool> leads(order.size(), false);
      for (const std::vector<int>& group : arrangement.levels[l]) {
        std::vector<int>& members = level.groups.emplace_back();
        for (const int d : group) {
          const int at = position[static_cast<size_t>(d)];
          if (takes_part[static_cast<size_t>(at)]) members.push_back(at);
        }
        std::ranges::sort(members);
        leads[static_cast<size_t>(members.front())] = true;
      }
      takes_part = std::move(leads);
    }
    model::ReduceLevel& outer = levels.emplace_back();
    outer.algorithm = arrangement.algorithms.back();
    outer.groups.emplace_back();
    for (size_t i = 0; i < order.size(); ++i) {
      if (takes_part[i]) outer.groups.front().push_back(static_cast<int>(i));
    }
    const auto link = [&](int a, int b) {
      return problem_.Link(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
    };
    return model::HierarchicalSeconds(levels, link, bytes_);
  }

 private:
  // Rotated so that the device with the fastest links to all others comes first.
  std::vector<int> RootFirst(std::vector<int> ring) const {
    const auto sum = [&](int root) {
      double seconds = 0;
      for (const int d : ring) seconds += d == root ? 0 : Message(d, root, bytes_) + Message(root, d, bytes_);
      return seconds;
    };
    std::ranges::rotate(ring, std::ranges::min_element(ring, {}, sum));
    return ring;
  }
  // Rotated so that a chain leaves out the slowest link of the ring.
  std::vector<int> SlowestLinkLast(std::vector<int> ring) const {
    size_t slowest = 0;
    const auto cost = [&](size_t i) { return Cost(ring[i], ring[(i + 1) % ring.size()]); };
    for (size_t i = 1; i < ring.size(); ++i) {
      if (cost(i) > cost(slowest)) slowest = i;
    }
    std::ranges::rotate(ring, ring.begin() + static_cast<std::ptrdiff_t>((slowest + 1) % ring.size()));
    return ring;
  }

  // Rotates each ring so that the leaders, which come first, reach one another fast: one after the other takes the
  // member whose farthest other leader is nearest.
  void ChooseLeaders(std::vector<std::vector<int>>& rings) const {
    for (int round = 0; round < kLeaderRounds; ++round) {
      bool changed = false;
      for (size_t g = 0; g < rings.size(); ++g) {
        const auto farthest = [&](int d) {
          double nearest_two[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
          for (size_t other = 0; other < rings.size(); ++other) {
            if (other == g) continue;
            const double cost = Cost(d, rings[other].front());
            if (cost < nearest_two[0]) {
              nearest_two[1] = std::exchange(nearest_two[0], cost);
            } else if (cost < nearest_two[1]) {
              nearest_two[1] = cost;
            }
          }
          return rings.size() > 2 ? nearest_two[1] : nearest_two[0];  // a ring needs two fast links of each leader
        };
        const auto best = std::ranges::min_element(rings[g], {}, farthest);
        if (best == rings[g].begin() || farthest(*best) >= farthest(rings[g].front())) continue;
        std::ranges::rotate(rings[g], best);
        changed = true;
      }
      if (!changed) return;
    }
  }

  // The fastest algorithm within the innermost groups; fills in the seconds.
  void ChooseInner(Arrangement& arrangement) const {
    AllreduceAlgorithm best = kRing;
    double least = std::numeric_limits<double>::infinity();
    for (const AllreduceAlgorithm algorithm : model::kAllreduceAlgorithms) {
      arrangement.algorithms.front() = algorithm;
      const double seconds = Seconds(arrangement);
      if (seconds >= least) continue;
      least = seconds;
      best = algorithm;
    }
    arrangement.algorithms.front() = best;
    arrangement.seconds = least;
  }

  const DeviceProblem& problem_;
  const double bytes_;
};

Arrangement ByFormation(const Arranger& arranger, const Grouping& groups, const std::vector<int>& devices) {
  return groups.size() < 2 || groups.size() == devices.size() ? arranger.Flat(devices) : arranger.TwoLevels(groups);
}

}  // namespace

Arrangement OneRing(const DeviceProblem& problem, const std::vector<int>& devices, double bytes) {
  Arrangement ring{.order = devices, .levels = {}, .algorithms = {kRing}};
  ring.seconds = Arranger(problem, bytes).Seconds(ring);
  return ring;
}

Arrangement ArrangeBySearch(const DeviceProblem& problem, const std::vector<int>& devices, double bytes) {
  const Arranger arranger(problem, bytes);
  Arrangement best = OneRing(problem, devices, bytes);
  if (devices.size() < 2) return best;
  const Arrangement flat = arranger.Flat(devices);
  if (flat.seconds < best.seconds) best = flat;
  const size_t root = Arranger::Root(devices.size());
  std::set<Grouping> tried;
  const auto offer = [&](const Grouping& groups) {
    if (groups.size() < devices.size() && tried.insert(groups).second) arranger.Offer(groups, best);
  };
  for (const Grouping& groups : arranger.ByLinks(devices)) {
    offer(groups);
    offer(arranger.Limited(groups, root));
    offer(arranger.ByPower(groups));
  }
  std::vector<size_t> sizes = {2, 3, std::max<size_t>(2, root / 2), root, 2 * root};
  if (devices.size() >= kThreeLevels) sizes.push_back(static_cast<size_t>(std::lround(std::cbrt(devices.size()))));
  for (const size_t size : sizes) offer(Arranger::Chunks(flat.order, size));
  offer(arranger.Equal(devices));
  offer(arranger.By(devices, [](const model::Device& d) { return d.pool; }));
  offer(arranger.By(devices, [](const model::Device& d) { return d.location; }));
  offer(arranger.By(devices, [](const model::Device& d) { return d.machine.empty() ? d.id : d.machine; }));
  return best;
}

Arrangement Arrange(const DeviceProblem& problem, const std::vector<int>& devices, double bytes, Formation formation,
                    base::Rng& rng) {
  const Arranger arranger(problem, bytes);
  const auto count = static_cast<int>(Arranger::Root(devices.size()));
  switch (formation) {
    case Formation::kBest:
      return devices.size() <= kExactDevices ? ExactArrangement(problem, devices, bytes)
                                             : ArrangeBySearch(problem, devices, bytes);
    case Formation::kOneRing:
      return OneRing(problem, devices, bytes);
    case Formation::kLinks:
      return ByFormation(arranger, arranger.ByPower(arranger.ByLinks(devices).front()), devices);
    case Formation::kPools:
      return ByFormation(arranger, arranger.By(devices, [](const model::Device& d) { return d.pool; }), devices);
    case Formation::kEqualPower:
      return ByFormation(arranger, arranger.Equal(devices), devices);
    case Formation::kRandom:
      return ByFormation(arranger, RandomGroups(devices, count, rng), devices);
  }
  return OneRing(problem, devices, bytes);
}

Arrangement Improved(const DeviceProblem& problem, const Arrangement& arrangement, double bytes) {
  const size_t n = arrangement.order.size();
  if (arrangement.levels.size() > 1 || n > kMostImproved || n < 3) return arrangement;
  const Arranger arranger(problem, bytes);
  Arrangement best = arrangement;
  Grouping groups = arrangement.levels.empty() ? Grouping{arrangement.order} : arrangement.levels.front();
  const auto offer = [&](Grouping changed) {
    std::erase_if(changed, [](const std::vector<int>& group) { return group.empty(); });
    Arrangement one = changed.size() < 2 ? arranger.Flat(changed.front()) : arranger.TwoLevels(changed);
    if (one.seconds >= best.seconds * (1 - 1e-9)) return false;
    best = std::move(one);
    groups = std::move(changed);
    return true;
  };
  const auto move_one = [&] {
    for (const int d : arrangement.order) {
      for (size_t to = 0; to <= groups.size(); ++to) {
        Grouping changed = groups;
        const auto from =
            std::ranges::find_if(changed, [&](const auto& group) { return std::ranges::count(group, d) > 0; });
        if (static_cast<size_t>(from - changed.begin()) == to || (to == groups.size() && from->size() == 1)) continue;
        std::erase(*from, d);
        if (to == changed.size()) changed.emplace_back();
        changed[to].push_back(d);
        if (offer(std::move(changed))) return true;
      }
    }
    return false;
  };
  const auto join_two = [&] {
    for (size_t a = 0; a < groups.size(); ++a) {
      for (size_t b = a + 1; b < groups.size(); ++b) {
        Grouping changed = groups;
        changed[a].insert(changed[a].end(), changed[b].begin(), changed[b].end());
        changed[b].clear();
        if (offer(std::move(changed))) return true;
      }
    }
    return false;
  };
  for (size_t round = 0; round < 2 * n && (move_one() || join_two()); ++round) continue;
  return best;
}

double LeastReductionSeconds(const DeviceProblem& problem, const std::vector<int>& devices, double bytes) {
  double least = 0;
  for (const int to : devices) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const int from : devices) {
      if (from == to) continue;
      const model::LinkSpeed& link = problem.Link(from, to);
      nearest = std::min(nearest, link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
    }
    if (devices.size() > 1) least = std::max(least, nearest);
  }
  return least;
}

DataParallel WithShares(const DeviceProblem& problem, const Arrangement& arrangement) {
  std::vector<DeviceProblem::Work> work;
  for (const int d : arrangement.order) work.push_back(problem.WorkOf(0, problem.layers(), d));
  const Shares shares = BalancedSamples(work, problem.samples());
  DataParallel out;
  std::set<int> used;
  for (size_t i = 0; i < arrangement.order.size(); ++i) {
    if (shares.shares[i] <= 0) continue;
    out.devices.push_back(arrangement.order[i]);
    out.shares.push_back(shares.shares[i]);
    used.insert(arrangement.order[i]);
  }
  for (size_t l = 0; l < arrangement.levels.size(); ++l) {
    Grouping level;
    for (const std::vector<int>& group : arrangement.levels[l]) {
      std::vector<int> kept;
      std::ranges::copy_if(group, std::back_inserter(kept), [&](int d) { return used.contains(d); });
      if (!kept.empty()) level.push_back(std::move(kept));
    }
    if (level.size() < 2 && arrangement.levels[l].size() > 1) continue;  // one group of all devices divides nothing
    out.levels.push_back(std::move(level));
    out.algorithms.push_back(arrangement.algorithms[l]);
  }
  out.algorithms.push_back(arrangement.algorithms.back());
  return out;
}

}  // namespace medley::sched

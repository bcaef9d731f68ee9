#include "common/model/allreduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "common/model/allreduce_algorithm.h"
#include "common/model/link_speed.h"

namespace medley::model {
namespace {

constexpr int64_t kLargestDoubled = 256 << 10;
constexpr int64_t kLargestAtRoot = 256 << 10;
constexpr double kMostValues = 1e15;   // of a sum, so that they can be counted
constexpr double kAboutAsFast = 0.87;  // what an algorithm must fall below to replace that of smaller sizes
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::array kAlternatives = {AllreduceAlgorithm::kRecursiveDoubling, AllreduceAlgorithm::kLinear,
                                      AllreduceAlgorithm::kCentralized};

// By size: of each of kAlternatives, its time over that of the ring, in the pool where it is largest.
using Ratios = std::map<int64_t, std::array<double, kAlternatives.size()>>;

// The measured number of replicas that is nearest to `members`, by their ratio; the smaller of two. 0: none.
int NearestRanks(int members, const std::string& pool, std::span<const AllreduceMeasurement> measured) {
  const auto distance = [&](int ranks) {
    return ranks > members ? static_cast<double>(ranks) / members : static_cast<double>(members) / ranks;
  };
  int nearest = 0;
  for (const AllreduceMeasurement& one : measured) {
    if (one.resource_type != pool || one.ranks < 2) continue;
    const double d = nearest == 0 ? 0 : distance(one.ranks) - distance(nearest);
    if (nearest == 0 || d < 0 || (d == 0 && one.ranks < nearest)) nearest = one.ranks;
  }
  return nearest;
}

// For one pool; empty if it was not measured. Of equal measurements the shortest counts: it was disturbed least.
Ratios RatiosOf(int members, const std::string& pool, std::span<const AllreduceMeasurement> measured) {
  const int ranks = NearestRanks(members, pool, measured);
  std::map<int64_t, std::map<AllreduceAlgorithm, double>> times;
  for (const AllreduceMeasurement& one : measured) {
    if (one.resource_type != pool || one.ranks != ranks || !(one.seconds > 0)) continue;
    const auto bytes = static_cast<double>(one.bytes);
    const double scale = AllreduceSeconds(one.algorithm, members, kUnmeasuredLink, bytes) /
                         AllreduceSeconds(one.algorithm, ranks, kUnmeasuredLink, bytes);
    double& seconds = times[one.bytes].try_emplace(one.algorithm, kNever).first->second;
    seconds = std::min(seconds, scale * one.seconds);
  }
  Ratios ratios;
  for (const auto& [bytes, by_algorithm] : times) {
    const auto ring = by_algorithm.find(AllreduceAlgorithm::kRing);
    if (ring == by_algorithm.end()) continue;
    auto& row = ratios[bytes];
    for (size_t a = 0; a < kAlternatives.size(); ++a) {
      const auto found = by_algorithm.find(kAlternatives[a]);
      const bool fits = kAlternatives[a] != AllreduceAlgorithm::kCentralized || bytes <= kLargestAtRoot / (members - 1);
      row[a] = found == by_algorithm.end() || !fits ? kNever : found->second / ring->second;
    }
  }
  return ratios;
}

// The sizes that both have, with the larger ratios.
void Intersect(Ratios& ratios, const Ratios& other) {
  for (auto it = ratios.begin(); it != ratios.end();) {
    const auto found = other.find(it->first);
    if (found == other.end()) {
      it = ratios.erase(it);
      continue;
    }
    for (size_t a = 0; a < kAlternatives.size(); ++a) it->second[a] = std::max(it->second[a], found->second[a]);
    ++it;
  }
}

// Recursive doubling has a round before and one after where the number of members is no power of two.
int DoublingRounds(int members) {
  const auto n = static_cast<unsigned>(members);
  return std::bit_width(n) - 1 + (std::has_single_bit(n) ? 0 : 2);
}

double MessageSeconds(const LinkSpeed& link, double bytes) {
  return link.latency_seconds + (link.bytes_per_second > 0 ? bytes / link.bytes_per_second : 0);
}

// The messages that arrive at the root share its card, so their bytes follow each other; and so do those that leave it.
double CentralizedSeconds(int members, LinkOf link, double bytes, int root) {
  double in_latency = 0, out_latency = 0, seconds = 0;
  for (int i = 0; i < members; ++i) {
    if (i == root) continue;
    const LinkSpeed in = link(i, root), out = link(root, i);
    in_latency = std::max(in_latency, in.latency_seconds);
    out_latency = std::max(out_latency, out.latency_seconds);
    seconds += MessageSeconds({0, in.bytes_per_second}, bytes) + MessageSeconds({0, out.bytes_per_second}, bytes);
  }
  return in_latency + out_latency + seconds;
}

// Members beyond the largest power of two give their values to another before, and get the sum after.
double DoublingSeconds(int members, LinkOf link, double bytes) {
  const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(members)));
  double before = 0, after = 0, seconds = 0;
  for (int i = power; i < members; ++i) {
    before = std::max(before, MessageSeconds(link(i, i - power), bytes));
    after = std::max(after, MessageSeconds(link(i - power, i), bytes));
  }
  for (int distance = 1; distance < power; distance *= 2) {
    double round = 0;
    for (int i = 0; i < power; ++i) round = std::max(round, MessageSeconds(link(i, i ^ distance), bytes));
    seconds += round;
  }
  return before + seconds + after;
}

void AddTraffic(AllreduceAlgorithm algorithm, const std::vector<int>& group, double bytes, int root,
                std::vector<Traffic>& out) {
  const size_t n = group.size();
  if (n < 2) return;
  const auto both = [&](int a, int b) {
    out.push_back({a, b, bytes});
    out.push_back({b, a, bytes});
  };
  switch (algorithm) {
    case AllreduceAlgorithm::kCentralized: {
      const int adds = std::ranges::find(group, root) == group.end() ? group.front() : root;
      for (const int member : group) {
        if (member != adds) both(member, adds);
      }
      return;
    }
    case AllreduceAlgorithm::kLinear:
      for (size_t i = 0; i + 1 < n; ++i) both(group[i], group[i + 1]);
      return;
    case AllreduceAlgorithm::kRecursiveDoubling: {
      const size_t power = std::bit_floor(n);
      for (size_t i = power; i < n; ++i) both(group[i], group[i - power]);
      for (size_t distance = 1; distance < power; distance *= 2) {
        for (size_t i = 0; i < power; ++i) out.push_back({group[i], group[i ^ distance], bytes});
      }
      return;
    }
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing: {
      const double part = 2 * static_cast<double>(n - 1) * bytes / static_cast<double>(n);
      for (size_t i = 0; i < n; ++i) out.push_back({group[i], group[(i + 1) % n], part});
      return;
    }
  }
}

}  // namespace

double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, const LinkSpeed& link, double bytes) {
  if (members < 2) return 0;
  const double n = members;
  switch (algorithm) {
    case AllreduceAlgorithm::kCentralized:  // the root's link carries all of them, in and out
      return 2 * MessageSeconds(link, (n - 1) * bytes);
    case AllreduceAlgorithm::kLinear:  // along the chain and back
      return 2 * (n - 1) * MessageSeconds(link, bytes);
    case AllreduceAlgorithm::kRecursiveDoubling:
      return DoublingRounds(members) * MessageSeconds(link, bytes);
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing:
      return 2 * (n - 1) * MessageSeconds(link, bytes / n);
  }
  return 0;
}

double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, LinkOf link, double bytes, int root) {
  if (members < 2) return 0;
  switch (algorithm) {
    case AllreduceAlgorithm::kCentralized:
      return CentralizedSeconds(members, link, bytes, root);
    case AllreduceAlgorithm::kLinear: {
      double seconds = 0;
      for (int i = 0; i + 1 < members; ++i) {
        seconds += MessageSeconds(link(i, i + 1), bytes) + MessageSeconds(link(i + 1, i), bytes);
      }
      return seconds;
    }
    case AllreduceAlgorithm::kRecursiveDoubling:
      return DoublingSeconds(members, link, bytes);
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing: {
      double round = 0;
      for (int i = 0; i < members; ++i) {
        round = std::max(round, MessageSeconds(link(i, (i + 1) % members), bytes / members));
      }
      return 2.0 * (members - 1) * round;
    }
  }
  return 0;
}

double BroadcastSeconds(int members, LinkOf link, double bytes) {
  double seconds = 0;
  for (int have = 1; have < members; have *= 2) {
    double round = 0;
    for (int i = 0; i < have && i + have < members; ++i) {
      round = std::max(round, MessageSeconds(link(i, i + have), bytes));
    }
    seconds += round;
  }
  return seconds;
}

double HierarchicalSeconds(std::span<const ReduceLevel> levels, LinkOf link, double bytes, int root) {
  double seconds = 0;
  for (size_t l = 0; l < levels.size(); ++l) {
    double adds = 0, tells = 0;
    for (const std::vector<int>& group : levels[l].groups) {
      const auto between = [&](int a, int b) {
        return link(group[static_cast<size_t>(a)], group[static_cast<size_t>(b)]);
      };
      const auto at = std::ranges::find(group, root);
      const int own_root = at == group.end() ? 0 : static_cast<int>(at - group.begin());
      const auto count = static_cast<int>(group.size());
      adds = std::max(adds, AllreduceSeconds(levels[l].algorithm, count, between, bytes, own_root));
      if (l + 1 < levels.size()) tells = std::max(tells, BroadcastSeconds(count, between, bytes));
    }
    seconds += adds + tells;
  }
  return seconds;
}

size_t ServedAhead(size_t members) {
  constexpr size_t kMostMessages = 512;
  return std::clamp<size_t>(kMostMessages / (members + kMaxReducing), 1, 8);
}

size_t ServedPiece(size_t members, size_t values) {
  // Values: 64 KiB, 1 and 128 MiB.
  constexpr size_t kLeast = size_t{1} << 14, kMost = size_t{1} << 18, kMostUnsent = size_t{1} << 25;
  constexpr size_t kPieces = 16;
  const size_t wanted = std::clamp((values + kPieces - 1) / kPieces, kLeast, kMost);
  return std::min(wanted, kMostUnsent / (ServedAhead(members) * (members + kMaxReducing)));
}

double ServedSeconds(int members, LinkOf link, double bytes, int root) {
  double in_latency = 0, out_latency = 0, in_seconds = 0, out_seconds = 0;
  for (int i = 0; i < members; ++i) {
    if (i == root) continue;
    const LinkSpeed in = link(i, root), out = link(root, i);
    in_latency = std::max(in_latency, in.latency_seconds);
    out_latency = std::max(out_latency, out.latency_seconds);
    in_seconds += MessageSeconds({0, in.bytes_per_second}, bytes);
    out_seconds += MessageSeconds({0, out.bytes_per_second}, bytes);
  }
  const double values = bytes / sizeof(float);
  const auto whole = static_cast<size_t>(std::clamp(values, 1.0, kMostValues));
  const auto piece = static_cast<double>(ServedPiece(static_cast<size_t>(std::max(members, 1)), whole));
  const double first = std::min(1.0, piece / std::max(values, 1.0));
  const double last = 1 - first * (std::ceil(1 / first) - 1);
  // All sums leave after the first has arrived, and the last leaves after all have arrived.
  return in_latency + out_latency + std::max(first * in_seconds + out_seconds, in_seconds + last * out_seconds);
}

std::vector<Traffic> TrafficOf(std::span<const ReduceLevel> levels, double bytes, int root) {
  std::vector<Traffic> out;
  for (size_t l = 0; l < levels.size(); ++l) {
    for (const std::vector<int>& group : levels[l].groups) {
      AddTraffic(levels[l].algorithm, group, bytes, root, out);
      if (l + 1 == levels.size()) continue;
      for (size_t have = 1; have < group.size(); have *= 2) {  // the broadcast
        for (size_t i = 0; i < have && i + have < group.size(); ++i) out.push_back({group[i], group[i + have], bytes});
      }
    }
  }
  return out;
}

std::vector<AlgorithmRule> AllreduceRules(int members, const LinkSpeed& link) {
  if (members < 2) return {};
  int64_t largest = 0;
  for (int64_t bytes = 1024; bytes <= kLargestDoubled; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    if (AllreduceSeconds(AllreduceAlgorithm::kRecursiveDoubling, members, link, size) >
        AllreduceSeconds(AllreduceAlgorithm::kRing, members, link, size)) {
      break;
    }
    largest = bytes;
  }
  if (largest == 0) return {};
  return {{members, largest, AllreduceAlgorithm::kRecursiveDoubling}};
}

std::vector<AlgorithmRule> MeasuredRules(int members, std::span<const std::string> pools,
                                         std::span<const AllreduceMeasurement> measured) {
  if (members < 2) return {};
  Ratios ratios;
  for (size_t p = 0; p < pools.size(); ++p) {
    Ratios of_pool = RatiosOf(members, pools[p], measured);
    if (p == 0) {
      ratios = std::move(of_pool);
    } else {
      Intersect(ratios, of_pool);
    }
  }
  if (ratios.empty()) return AllreduceRules(members, kUnmeasuredLink);
  std::vector<AlgorithmRule> rules;
  const std::array<double, kAlternatives.size()>* below = nullptr;  // the row of the next smaller size
  for (const auto& [bytes, row] : ratios) {
    AllreduceAlgorithm best = AllreduceAlgorithm::kRing;
    double best_ratio = kNever, kept_ratio = kNever;
    for (size_t a = 0; a < kAlternatives.size(); ++a) {
      const double ratio = below == nullptr ? row[a] : std::max(row[a], (*below)[a]);
      if (ratio > kClearlyFaster) continue;
      if (!rules.empty() && rules.back().algorithm == kAlternatives[a]) kept_ratio = ratio;
      if (ratio >= best_ratio) continue;
      best = kAlternatives[a];
      best_ratio = ratio;
    }
    below = &row;
    if (kept_ratio < kNever && best_ratio > kAboutAsFast * kept_ratio) best = rules.back().algorithm;
    if (!rules.empty() && rules.back().algorithm == best) {
      rules.back().max_bytes = bytes;
    } else {
      rules.push_back({members, bytes, best});
    }
  }
  while (!rules.empty() && rules.back().algorithm == AllreduceAlgorithm::kRing) rules.pop_back();
  return rules;
}

AllreduceAlgorithm ChooseAllreduce(std::span<const AlgorithmRule> rules, int members, int64_t bytes) {
  const AlgorithmRule* best = nullptr;
  for (const AlgorithmRule& rule : rules) {
    if (rule.ranks != members || rule.max_bytes < bytes) continue;
    if (best == nullptr || rule.max_bytes < best->max_bytes) best = &rule;
  }
  if (best == nullptr || best->algorithm == AllreduceAlgorithm::kAuto) return AllreduceAlgorithm::kRing;
  return best->algorithm;
}

}  // namespace medley::model

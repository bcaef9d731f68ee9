#include "common/model/allreduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>

namespace medley::model {
namespace {

constexpr int64_t kLargestDoubled = 256 << 10;
constexpr int64_t kLargestAtRoot = 256 << 10;
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

// Of one pool; empty if it was not measured. Of equal measurements the shortest counts: it was disturbed least.
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

}  // namespace

double AllreduceSeconds(AllreduceAlgorithm algorithm, int members, const LinkSpeed& link, double bytes) {
  if (members < 2) return 0;
  const auto message = [&](double size) {
    return link.latency_seconds + (link.bytes_per_second > 0 ? size / link.bytes_per_second : 0);
  };
  const double n = members;
  switch (algorithm) {
    case AllreduceAlgorithm::kCentralized:  // the root's link carries all of them, in and out
      return 2 * message((n - 1) * bytes);
    case AllreduceAlgorithm::kLinear:  // along the chain and back
      return 2 * (n - 1) * message(bytes);
    case AllreduceAlgorithm::kRecursiveDoubling:
      return DoublingRounds(members) * message(bytes);
    case AllreduceAlgorithm::kAuto:
    case AllreduceAlgorithm::kRing:
      return 2 * (n - 1) * message(bytes / n);
  }
  return 0;
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

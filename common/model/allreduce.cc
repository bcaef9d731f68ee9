#include "common/model/allreduce.h"

#include <bit>

namespace medley::model {
namespace {

constexpr int64_t kLargestDoubled = 256 << 10;

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

#include "worker/pipeline/reshard.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "common/base/status.h"

namespace medley::worker {

std::vector<double> ReplicaShares(const model::Stage& stage) {
  std::vector<double> shares;
  for (const model::Group& group : stage.groups) {
    shares.insert(shares.end(), static_cast<size_t>(group.units), group.share / group.units);
  }
  return shares;
}

std::vector<SampleRange> Split(int count, std::span<const double> shares) {
  const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  MEDLEY_CHECK(total > 0, "the shares of a stage must have a positive sum");
  std::vector<SampleRange> ranges;
  double sum = 0;
  int first = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    const int end = i + 1 == shares.size() ? count : static_cast<int>(std::lround(count * sum / total));
    ranges.push_back({first, end - first});
    first = end;
  }
  return ranges;
}

std::vector<Transfer> Reshard(int count, std::span<const double> from_shares, std::span<const double> to_shares) {
  const std::vector<SampleRange> from = Split(count, from_shares);
  const std::vector<SampleRange> to = Split(count, to_shares);
  std::vector<Transfer> transfers;
  for (size_t i = 0; i < from.size(); ++i) {
    for (size_t j = 0; j < to.size(); ++j) {
      const int first = std::max(from[i].first, to[j].first);
      const int end = std::min(from[i].first + from[i].count, to[j].first + to[j].count);
      if (first < end) {
        transfers.push_back({static_cast<int>(i), static_cast<int>(j), {first, end - first}});
      }
    }
  }
  return transfers;
}

SampleRange MicroBatch(int count, int micro, int micros) {
  const auto cut = [&](int i) { return static_cast<int>(static_cast<int64_t>(count) * i / micros); };
  return {cut(micro), cut(micro + 1) - cut(micro)};
}

}  // namespace medley::worker

#include "common/model/pool_links.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace medley::model {
namespace {

LinkSpeed SlowerLink(const LinkSpeed& a, const LinkSpeed& b) {
  return {std::max(a.latency_seconds, b.latency_seconds), std::min(a.bytes_per_second, b.bytes_per_second)};
}

}  // namespace

std::vector<std::optional<LinkSpeed>> PoolLinks(std::span<const std::string> pools, std::span<const Link> links) {
  const size_t count = pools.size();
  std::map<std::string_view, size_t> at;
  for (size_t i = 0; i < count; ++i) at.emplace(pools[i], i);
  std::vector<std::optional<LinkSpeed>> speeds(count * count);
  std::vector<char> measured(count * count, 0);  // in this direction
  for (const bool reverse : {false, true}) {
    for (const Link& link : links) {
      const auto from = at.find(reverse ? link.to : link.from), to = at.find(reverse ? link.from : link.to);
      if (from == at.end() || to == at.end() || !(link.bytes_per_second > 0)) continue;
      const size_t index = from->second * count + to->second;
      if (reverse && measured[index] != 0) continue;
      const LinkSpeed speed{link.latency_seconds, link.bytes_per_second};
      speeds[index] = speeds[index] ? SlowerLink(*speeds[index], speed) : speed;
    }
    for (size_t i = 0; i < speeds.size(); ++i) measured[i] = speeds[i].has_value() ? 1 : 0;
  }
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) {
      const auto &within_a = speeds[a * count + a], &within_b = speeds[b * count + b];
      if (!speeds[a * count + b] && within_a && within_b) speeds[a * count + b] = SlowerLink(*within_a, *within_b);
    }
  }
  return speeds;
}

}  // namespace medley::model

#include "operator/api/pool_outage.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/status.h"
#include "common/document/reader.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kFirst = std::chrono::minutes(5);
constexpr base::nanoseconds kLongest = std::chrono::hours(2);
constexpr base::nanoseconds kRemembered = std::chrono::hours(24);  // after its end
constexpr int kMostFailures = 1'000'000;

base::WallTime WholeSeconds(base::WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); }

base::WallTime::duration Wall(base::nanoseconds length) {
  return std::chrono::duration_cast<base::WallTime::duration>(length);
}

}  // namespace

PoolOutage AfterFailure(const std::optional<PoolOutage>& before, const std::string& zone, int64_t generation,
                        base::WallTime now) {
  const bool in_a_row =
      before && before->generation == generation && now >= before->since && now < before->until + Wall(kRemembered);
  PoolOutage outage{zone, generation, 1, WholeSeconds(now), {}};
  if (in_a_row) {
    outage.failures = std::min(before->failures + 1, kMostFailures);
    outage.since = before->since;
  }
  const base::nanoseconds length = std::min(kFirst * (int64_t{1} << std::min(outage.failures - 1, 20)), kLongest);
  outage.until = WholeSeconds(now) + Wall(length);
  return outage;
}

const PoolOutage* FindActive(const std::vector<PoolOutage>& outages, int64_t generation, const std::string& zone,
                             base::WallTime now) {
  const auto active = std::find_if(outages.begin(), outages.end(), [&](const PoolOutage& outage) {
    // A clock that was set back does not make an outage longer than the longest.
    const bool lasts = now < outage.until && outage.until - now <= Wall(kLongest);
    return lasts && outage.generation == generation && (outage.zone.empty() || outage.zone == zone);
  });
  return active == outages.end() ? nullptr : &*active;
}

std::string InWords(const PoolOutage& outage) {
  return fmt::format("unavailable until {}{}, because no node came for its pods{}", base::FormatTime(outage.until),
                     outage.zone.empty() ? "" : " in zone " + outage.zone,
                     outage.failures > 1 ? fmt::format(" ({} times in a row)", outage.failures) : "");
}

std::vector<PoolOutage> OutagesFromJson(const kube::Json& list) {
  std::vector<PoolOutage> outages;
  if (!list.is_array()) return outages;
  for (const kube::Json& item : list) {
    const document::Reader reader(item, "status.outages");
    const auto since = base::ParseTime(reader.String("since"));
    const auto until = base::ParseTime(reader.String("unavailableUntil"));
    const int64_t failures = reader.Int("failures", 0);
    PoolOutage outage{reader.String("zone"), reader.Int("generation", 0), 0, {}, {}};
    if (!reader.status().ok() || !since.ok() || !until.ok() || failures < 1 || failures > kMostFailures) continue;
    outage.failures = static_cast<int>(failures);
    outage.since = WholeSeconds(*since);
    outage.until = WholeSeconds(*until);
    outages.push_back(std::move(outage));
  }
  return outages;
}

kube::Json ToJson(const std::vector<PoolOutage>& outages) {
  kube::Json list = kube::Json::array();
  for (const PoolOutage& outage : outages) {
    kube::Json item = {{"generation", outage.generation},
                       {"failures", outage.failures},
                       {"since", base::FormatTime(outage.since)},
                       {"unavailableUntil", base::FormatTime(outage.until)}};
    if (!outage.zone.empty()) item["zone"] = outage.zone;
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace medley::ops

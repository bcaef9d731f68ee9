#include "scheduler-service/simulate/profile_links.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/model/pool_links.h"
#include "common/model/profile.h"

namespace medley::sched {
namespace {

// What messages cost the processors of a pool: as measured within it, and where that was measured more than once, the
// most, so that the order of the links does not matter.
Durations::MessageCpu MessageCpuOf(const model::Profile& profile, const std::string& pool) {
  Durations::MessageCpu cost;
  for (const model::Link& link : profile.links) {
    if (link.from != pool || link.to != pool) continue;
    cost.per_message = std::max(cost.per_message, link.processor_seconds_per_message);
    cost.per_byte = std::max(cost.per_byte, link.processor_seconds_per_byte);
  }
  return cost;
}

}  // namespace

// Each pool is a location. A card carries what its fastest link can, in either direction.
std::vector<bool> FillPoolLinks(const program::Program& program, const model::Profile& profile, Durations& out) {
  std::vector<std::string> pools;  // by location
  for (size_t d = 0; d < program.devices.size(); ++d) {
    const std::string& pool = program.devices[d].pool;
    const auto found = std::ranges::find(pools, pool);
    out.location[d] = static_cast<int>(found - pools.begin());
    if (found == pools.end()) pools.push_back(pool);
  }
  out.locations = static_cast<int>(pools.size());
  out.message_cpu.clear();
  for (const std::string& pool : pools) out.message_cpu.push_back(MessageCpuOf(profile, pool));
  out.links.clear();
  std::vector<bool> known;
  std::vector<double> fastest(pools.size(), 0);
  for (const std::optional<LinkSpeed>& link : model::PoolLinks(pools, profile.links)) {
    const size_t from = out.links.size() / pools.size(), to = out.links.size() % pools.size();
    known.push_back(link.has_value());
    out.links.push_back(link.value_or(LinkSpeed{}));
    for (const size_t end : {from, to}) fastest[end] = std::max(fastest[end], out.links.back().bytes_per_second);
  }
  for (size_t d = 0; d < program.devices.size(); ++d) {
    double& card = out.card_bytes_per_second[static_cast<size_t>(out.machine[d])];
    card = std::max(card, fastest[static_cast<size_t>(out.location[d])]);
  }
  return known;
}

// Each device is a location. A card carries what its fastest link to another machine can. What messages cost the
// processors is that of the profile, if it has any.
absl::Status FillDeviceLinks(const program::Program& program, const model::Profile& profile, const DeviceLinks& links,
                             Durations& out) {
  const size_t count = program.devices.size();
  std::vector<int> at;
  for (const program::Device& device : program.devices) {
    const auto found = links.index.find(device.id);
    if (found == links.index.end()) return base::InvalidArgument("device '{}' is not in the cluster", device.id);
    out.location[at.size()] = static_cast<int>(at.size());
    at.push_back(found->second);
  }
  out.locations = static_cast<int>(count);
  out.links_within_machines = true;
  out.links.assign(count * count, {});
  out.message_cpu.assign(count, {});
  for (size_t a = 0; a < count; ++a) {
    out.message_cpu[a] = MessageCpuOf(profile, program.devices[a].pool);
    for (size_t b = 0; b < count; ++b) {
      const LinkSpeed& speed = links.table.Between(at[a], at[b]);
      out.links[a * count + b] = speed;
      if (out.machine[a] == out.machine[b]) continue;
      for (const int machine : {out.machine[a], out.machine[b]}) {
        double& card = out.card_bytes_per_second[static_cast<size_t>(machine)];
        card = std::max(card, speed.bytes_per_second);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::sched

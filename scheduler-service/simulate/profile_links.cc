#include "scheduler-service/simulate/profile_links.h"

#include <algorithm>
#include <map>
#include <string>

#include "common/base/status.h"
#include "common/model/profile.h"

namespace medley::sched {
namespace {

LinkSpeed SpeedOf(const model::Link& link) { return {link.latency_seconds, link.bytes_per_second}; }
LinkSpeed SlowerOf(const LinkSpeed& a, const LinkSpeed& b) {
  return {std::max(a.latency_seconds, b.latency_seconds), std::min(a.bytes_per_second, b.bytes_per_second)};
}

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
  std::map<std::string, int> pools;
  for (size_t d = 0; d < program.devices.size(); ++d) {
    out.location[d] = pools.try_emplace(program.devices[d].pool, static_cast<int>(pools.size())).first->second;
  }
  out.locations = static_cast<int>(pools.size());
  const size_t count = pools.size() * pools.size();
  out.links.assign(count, {});
  out.message_cpu.assign(pools.size(), {});
  for (const auto& [pool, location] : pools)
    out.message_cpu[static_cast<size_t>(location)] = MessageCpuOf(profile, pool);
  std::vector<bool> known(count, false);
  std::vector<double> fastest(pools.size(), 0);
  // A link holds in both directions, unless the other direction has its own, wherever that stands in the list. Of
  // several measurements of one direction the slowest counts.
  std::vector<bool> measured;  // in this direction
  for (const bool reverse : {false, true}) {
    for (const model::Link& link : profile.links) {
      const auto from = pools.find(reverse ? link.to : link.from), to = pools.find(reverse ? link.from : link.to);
      if (from == pools.end() || to == pools.end()) continue;
      const auto a = static_cast<size_t>(from->second), b = static_cast<size_t>(to->second);
      const size_t index = a * pools.size() + b;
      // A speed of 0 is unknown: only what messages cost the processor was measured.
      if (link.bytes_per_second <= 0 || (reverse && measured[index])) continue;
      out.links[index] = known[index] ? SlowerOf(out.links[index], SpeedOf(link)) : SpeedOf(link);
      known[index] = true;
    }
    measured = known;
  }
  for (size_t a = 0; a < pools.size(); ++a) {
    for (size_t b = 0; b < pools.size(); ++b) {
      if (!known[a * pools.size() + b]) continue;
      for (const size_t end : {a, b}) {
        fastest[end] = std::max(fastest[end], out.links[a * pools.size() + b].bytes_per_second);
      }
    }
  }
  // Between pools that were not measured together: the slower end counts.
  for (size_t a = 0; a < pools.size(); ++a) {
    for (size_t b = 0; b < pools.size(); ++b) {
      const size_t index = a * pools.size() + b, at_a = a * pools.size() + a, at_b = b * pools.size() + b;
      if (known[index] || !known[at_a] || !known[at_b]) continue;
      out.links[index] = SlowerOf(out.links[at_a], out.links[at_b]);
      known[index] = true;
    }
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

#include "scheduler-service/simulate/profile_links.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/model/message_cost.h"
#include "common/model/model.h"
#include "common/model/pool_links.h"
#include "common/model/profile.h"

namespace medley::sched {
namespace {

// What messages cost the processors of a pool, one of whose devices computes with so many bytes between two of them: as
// measured within the pool, and where that was measured more than once, the most, so that the order of the links does
// not matter.
Durations::MessageCpu MessageCpuOf(const model::Profile& profile, const std::string& pool, double bytes_between) {
  Durations::MessageCpu cost;
  for (const model::Link& link : profile.links) {
    if (link.from != pool || link.to != pool) continue;
    cost.per_message = std::max(cost.per_message, model::MessageCostOf(link).Seconds(bytes_between));
    cost.per_byte = std::max(cost.per_byte, link.processor_seconds_per_byte);
  }
  return cost;
}

// By device: what it computes with between two messages.
std::vector<double> BytesBetweenMessages(const program::Program& program, const model::Profile& profile) {
  std::vector<double> parameters(program.devices.size(), 0), messages(program.devices.size(), 0);
  for (const program::Block& block : program.blocks) {
    double bytes = 0;
    for (int i = block.operations.first; i < block.operations.end; ++i) {
      const model::Layer& layer = profile.model.layers[static_cast<size_t>(i)];
      if (!layer.sparse) bytes += layer.weight_bytes;
    }
    for (const int device : program.layouts[static_cast<size_t>(block.layout)].devices) {
      parameters[static_cast<size_t>(device)] += bytes;
    }
  }
  for (const program::Instruction& one : program.instructions) {
    const bool message = one.kind == program::Kind::kSend || one.kind == program::Kind::kReceive;
    if (message && one.peer != one.device) ++messages[static_cast<size_t>(one.device)];
  }
  for (size_t d = 0; d < messages.size(); ++d) {
    parameters[d] = model::BytesBetweenMessages(parameters[d], program.micro_batches, messages[d]);
  }
  return parameters;
}

}  // namespace

void FillMessageCpu(const program::Program& program, const model::Profile& profile, Durations& out) {
  const std::vector<double> bytes = BytesBetweenMessages(program, profile);
  out.message_cpu.clear();
  for (size_t d = 0; d < bytes.size(); ++d) {
    out.message_cpu.push_back(MessageCpuOf(profile, program.devices[d].pool, bytes[d]));
  }
}

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

// Each device is a location. A card carries what its fastest link to another machine can.
absl::Status FillDeviceLinks(const program::Program& program, const DeviceLinks& links, Durations& out) {
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
  for (size_t a = 0; a < count; ++a) {
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

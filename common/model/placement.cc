#include "common/model/placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace medley::model {
namespace {

absl::Status CheckDevices(const std::vector<Device>& devices, std::set<std::string>& ids) {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].id.empty()) return base::InvalidArgument("devices[{}].id: must not be empty", d);
    if (devices[d].pool.empty()) return base::InvalidArgument("devices[{}].pool: must not be empty", d);
    if (!ids.insert(devices[d].id).second) {
      return base::InvalidArgument("devices[{}].id: '{}' appears twice", d, devices[d].id);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReplicas(const Placement& placement, const std::set<std::string>& ids, const std::string& path) {
  if (placement.replicas.empty()) return base::InvalidArgument("{}.replicas: a placement needs at least one", path);
  double sum = 0;
  std::set<std::string> seen;
  for (size_t r = 0; r < placement.replicas.size(); ++r) {
    const Replica& replica = placement.replicas[r];
    const std::string here = fmt::format("{}.replicas[{}]", path, r);
    if (!ids.contains(replica.device))
      return base::InvalidArgument("{}: there is no device '{}'", here, replica.device);
    if (!seen.insert(replica.device).second) {
      return base::InvalidArgument("{}: device '{}' appears twice", here, replica.device);
    }
    if (!(replica.share > 0 && replica.share <= 1)) {
      return base::InvalidArgument("{}.share: must be in (0, 1], is {}", here, replica.share);
    }
    sum += replica.share;
  }
  if (std::abs(sum - 1) > 1e-6) {
    return base::InvalidArgument("{}.replicas: the shares must sum to 1, they sum to {}", path, sum);
  }
  return absl::OkStatus();
}

// Groups that the level above divides would have a leader in one part and members in another.
absl::Status CheckNested(const HierarchyLevel& below, const HierarchyLevel& level, const std::string& path) {
  std::map<std::string_view, size_t> group_of;
  for (size_t g = 0; g < level.groups.size(); ++g) {
    for (const std::string& device : level.groups[g]) group_of[device] = g;
  }
  for (const std::vector<std::string>& group : below.groups) {
    for (const std::string& device : group) {
      if (group_of.at(device) == group_of.at(group.front())) continue;
      return base::InvalidArgument("{}: '{}' and '{}' are in one group of the level below and in two here", path,
                                   group.front(), device);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLevel(const HierarchyLevel& level, const std::set<std::string>& replicas, const std::string& path) {
  std::set<std::string> seen;
  for (const std::vector<std::string>& group : level.groups) {
    if (group.empty()) return base::InvalidArgument("{}: a group is empty", path);
    for (const std::string& device : group) {
      if (!replicas.contains(device)) return base::InvalidArgument("{}: '{}' is no replica", path, device);
      if (!seen.insert(device).second) return base::InvalidArgument("{}: '{}' is in two groups", path, device);
    }
  }
  if (seen.size() != replicas.size()) {
    return base::InvalidArgument("{}: {} of {} replicas are in a group", path, seen.size(), replicas.size());
  }
  return absl::OkStatus();
}

}  // namespace

std::string StageDeviceId(const std::string& pool, int index) { return fmt::format("{}/{}", pool, index); }

absl::Status CheckSync(const Sync& sync, const std::set<std::string>& replicas, const std::string& path) {
  if (!sync.root.empty() && !replicas.contains(sync.root)) {
    return base::InvalidArgument("{}.root: '{}' is no replica", path, sync.root);
  }
  for (size_t l = 0; l < sync.hierarchy.size(); ++l) {
    const std::string here = fmt::format("{}.hierarchy[{}]", path, l);
    MEDLEY_RETURN_IF_ERROR(CheckLevel(sync.hierarchy[l], replicas, here));
    if (l > 0) MEDLEY_RETURN_IF_ERROR(CheckNested(sync.hierarchy[l - 1], sync.hierarchy[l], here));
  }
  if (sync.mode == SyncMode::kPercentage && !(sync.fraction > 0 && sync.fraction <= 1)) {
    return base::InvalidArgument("{}.fraction: must be in (0, 1], is {}", path, sync.fraction);
  }
  if (sync.mode == SyncMode::kFlexible && !(sync.target_ratio > 0)) {
    return base::InvalidArgument("{}.targetRatio: must be positive, is {}", path, sync.target_ratio);
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const OperationRange& range, int operations, const std::string& path) {
  if (range.first < 0 || range.end > operations || range.first >= range.end) {
    return base::InvalidArgument("{}: [{}, {}) is not a range of operations within [0, {})", path, range.first,
                                 range.end, operations);
  }
  return absl::OkStatus();
}

absl::Status CheckUnits(const ExecutionPlan& plan) {
  int64_t units = 0;
  const auto add = [&](int more, const std::string& path) {
    units += std::max(more, 0);
    if (units <= kMaxUnits) return absl::OkStatus();
    return base::InvalidArgument("{}.units: the plan has more than {} units", path, kMaxUnits);
  };
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const std::vector<Group>& groups = plan.stages[s].groups;
    for (size_t g = 0; g < groups.size(); ++g) {
      MEDLEY_RETURN_IF_ERROR(add(groups[g].units, fmt::format("stages[{}].groups[{}]", s, g)));
    }
  }
  if (std::ssize(plan.devices) > kMaxUnits) {
    return base::InvalidArgument("devices: the plan has {}, at most {} are allowed", plan.devices.size(), kMaxUnits);
  }
  return plan.servers ? add(plan.servers->units, "servers") : absl::OkStatus();
}

absl::Status CheckStageSyncs(const ExecutionPlan& plan) {
  MEDLEY_RETURN_IF_ERROR(CheckUnits(plan));
  std::map<std::string, int> units;  // by pool
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    std::set<std::string> replicas;
    for (const Group& group : plan.stages[s].groups) {
      for (int u = 0; u < group.units; ++u) replicas.insert(StageDeviceId(group.pool, units[group.pool]++));
    }
    const std::vector<OperationSync>& syncs = plan.stages[s].syncs;
    for (size_t i = 0; i < syncs.size(); ++i) {
      MEDLEY_RETURN_IF_ERROR(CheckSync(syncs[i].sync, replicas, fmt::format("stages[{}].syncs[{}].sync", s, i)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlaced(const ExecutionPlan& plan) {
  std::set<std::string> ids;
  MEDLEY_RETURN_IF_ERROR(CheckDevices(plan.devices, ids));
  std::set<std::string> used;
  for (size_t p = 0; p < plan.placements.size(); ++p) {
    const std::string path = fmt::format("placements[{}]", p);
    MEDLEY_RETURN_IF_ERROR(CheckReplicas(plan.placements[p], ids, path));
    std::set<std::string> replicas;
    for (const Replica& replica : plan.placements[p].replicas) replicas.insert(replica.device);
    MEDLEY_RETURN_IF_ERROR(CheckSync(plan.placements[p].sync, replicas, path + ".sync"));
    used.insert(replicas.begin(), replicas.end());
  }
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    if (!used.contains(plan.devices[d].id)) {
      return base::InvalidArgument("devices[{}]: '{}' is in no placement", d, plan.devices[d].id);
    }
  }
  return absl::OkStatus();
}

std::vector<std::vector<OperationRange>> OperationsByDevice(const ExecutionPlan& plan) {
  std::vector<std::vector<OperationRange>> out;
  for (const Stage& stage : plan.stages) {
    out.resize(out.size() + static_cast<size_t>(std::max(0, stage.Units())), stage.operations);
  }
  std::map<std::string, size_t> index;
  for (const Device& device : plan.devices) {
    index[device.id] = out.size();
    out.emplace_back();
  }
  for (const Placement& placement : plan.placements) {
    for (const Replica& replica : placement.replicas) {
      const auto at = index.find(replica.device);
      if (at == index.end()) continue;
      std::vector<OperationRange>& ranges = out[at->second];
      ranges.insert(ranges.end(), placement.operations.begin(), placement.operations.end());
    }
  }
  return out;
}

std::map<std::string, int> TrainersByPool(const ExecutionPlan& plan) {
  std::map<std::string, int> units;
  for (const Stage& stage : plan.stages) {
    for (const Group& group : stage.groups) units[group.pool] += group.units;
  }
  for (const Device& device : plan.devices) ++units[device.pool];
  return units;
}

std::vector<Sync> SyncsOf(const ExecutionPlan& plan) {
  std::vector<Sync> syncs;
  for (const Stage& stage : plan.stages) {
    for (const OperationSync& entry : stage.syncs) syncs.push_back(entry.sync);
  }
  for (const Placement& placement : plan.placements) syncs.push_back(placement.sync);
  return syncs;
}

absl::Status CheckOrder(const std::vector<OrderEntry>& order, int layers) {
  if (order.empty()) return absl::OkStatus();
  std::set<std::pair<int, Phase>> seen;
  for (size_t i = 0; i < order.size(); ++i) {
    const OrderEntry& entry = order[i];
    if (entry.operation < 0 || entry.operation >= layers) {
      return base::InvalidArgument("order[{}]: operation {} does not exist, the model has {}", i, entry.operation,
                                   layers);
    }
    if (!seen.emplace(entry.operation, entry.phase).second) {
      return base::InvalidArgument("order[{}]: a phase of operation {} appears twice", i, entry.operation);
    }
  }
  const auto passes = std::ranges::count_if(seen, [](const auto& one) { return one.second != Phase::kReduce; });
  if (passes != 0 && passes != int64_t{2} * layers) {
    return base::InvalidArgument("order: has {} passes, but {} operations have {}: all or none must be in it", passes,
                                 layers, int64_t{2} * layers);
  }
  return absl::OkStatus();
}

}  // namespace medley::model

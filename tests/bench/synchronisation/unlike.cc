#include "tests/bench/synchronisation/unlike.h"

#include <fmt/format.h>

#include <utility>

namespace medley::bench {
namespace {

std::string MemberName(int index) { return fmt::format("t0-{}", index); }

}  // namespace

int CountMembers(const std::vector<MemberGroup>& groups) {
  int members = 0;
  for (const MemberGroup& group : groups) members += group.members;
  return members;
}

std::map<std::string, double> CoresOf(const std::vector<MemberGroup>& groups) {
  std::map<std::string, double> cores;
  for (const MemberGroup& group : groups) cores[group.name] = group.cores;
  return cores;
}

std::vector<std::string> PoolsByName(const std::vector<MemberGroup>& groups) {
  std::map<std::string, std::string> by_name;
  for (const MemberGroup& group : groups) {
    for (int i = 0; i < group.members; ++i) by_name[MemberName(static_cast<int>(by_name.size()))] = group.name;
  }
  std::vector<std::string> pools;
  for (const auto& [name, pool] : by_name) pools.push_back(pool);
  return pools;
}

worker::JobShape ReplicasInGroups(const std::vector<MemberGroup>& groups, int operations, bool proportional,
                                  const worker::JobShape& how) {
  double power = 0;
  for (const MemberGroup& group : groups) power += group.cores * group.members;
  worker::JobShape shape;
  plan::v1::ExecutionPlan& plan = shape.planned;
  plan.mutable_schedule()->set_kind(plan::v1::SCHEDULE_KIND_SYNC_1F1B);
  plan.mutable_schedule()->set_micro_batches(1);
  plan::v1::Placement& placement = *plan.add_placements();
  placement.add_operations()->set_end(operations);
  plan::v1::Sync& sync = *placement.mutable_sync();
  sync.set_kind(plan::v1::SYNC_KIND_ALLREDUCE);
  sync.set_algorithm(plan::v1::ALLREDUCE_ALGORITHM_RING);
  sync.set_mode(how.mode);
  sync.set_fraction(how.fraction);
  sync.set_target_ratio(how.target_ratio);
  if (how.anomaly.detector() != plan::v1::ANOMALY_DETECTOR_UNSPECIFIED) *sync.mutable_anomaly() = how.anomaly;
  plan::v1::HierarchyLevel level;
  level.set_algorithm(plan::v1::ALLREDUCE_ALGORITHM_LINEAR);
  const int members = CountMembers(groups);
  for (const MemberGroup& group : groups) {
    plan::v1::DeviceGroup& together = *level.add_groups();
    for (int i = 0; i < group.members; ++i) {
      plan::v1::Device& device = *plan.add_devices();
      device.set_id(fmt::format("device-{}", plan.devices_size() - 1));
      device.set_pool(group.name);
      plan::v1::Replica& replica = *placement.add_replicas();
      replica.set_device(device.id());
      replica.set_share(proportional ? group.cores / power : 1.0 / members);
      together.add_devices(device.id());
    }
  }
  if (groups.size() > 1) *sync.add_hierarchy() = level;
  return shape;
}

std::vector<std::pair<std::string, std::string>> LinksBetween(const std::vector<MemberGroup>& groups) {
  std::vector<std::pair<std::string, std::string>> links;
  int first = 0;
  for (const MemberGroup& group : groups) {
    for (int a = first; a < first + group.members; ++a) {
      for (int b = first + group.members; b < CountMembers(groups); ++b)
        links.push_back({MemberName(a), MemberName(b)});
    }
    first += group.members;
  }
  return links;
}

}  // namespace medley::bench

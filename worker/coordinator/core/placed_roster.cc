#include "worker/coordinator/core/placed_roster.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "worker/coordinator/core/cut_sync.h"

namespace medley::worker {
namespace {

template <typename T>
using Repeated = google::protobuf::RepeatedPtrField<T>;

std::map<std::string, int> DeviceNumbers(const plan::v1::ExecutionPlan& plan) {
  std::map<std::string, int> numbers;
  for (int d = 0; d < plan.devices_size(); ++d) numbers.emplace(plan.devices(d).id(), d);
  return numbers;
}

// Returns false when no replica is left.
bool CutReplicas(const std::set<std::string>& present, plan::v1::Placement& placement) {
  Repeated<plan::v1::Replica> kept;
  double sum = 0;
  for (const plan::v1::Replica& replica : placement.replicas()) {
    if (!present.contains(replica.device())) continue;
    *kept.Add() = replica;
    sum += replica.share();
  }
  for (plan::v1::Replica& replica : kept) replica.set_share(sum > 0 ? replica.share() / sum : 1.0 / kept.size());
  placement.mutable_replicas()->Swap(&kept);
  return placement.replicas_size() > 0;
}

}  // namespace

absl::Status CheckDeviceSlots(const job::v1::ApplyPlanRequest& request) {
  const plan::v1::ExecutionPlan& plan = request.plan();
  const std::map<std::string, int> numbers = DeviceNumbers(plan);
  std::set<std::string> filled;
  for (const job::v1::MemberSlot& slot : request.slots()) {
    if (slot.role() != job::v1::MEMBER_ROLE_TRAINER) continue;
    const auto device = numbers.find(slot.device());
    if (device == numbers.end()) {
      return base::InvalidArgument("slot {}: the plan has no device '{}'", slot.member(), slot.device());
    }
    const std::string& pool = plan.devices(device->second).pool();
    if (pool != slot.pool()) {
      return base::InvalidArgument("slot {}: device '{}' is of pool {}, not {}", slot.member(), slot.device(), pool,
                                   slot.pool());
    }
    if (!filled.insert(slot.device()).second) {
      return base::InvalidArgument("slot {}: another slot has device '{}'", slot.member(), slot.device());
    }
  }
  for (const plan::v1::Device& device : plan.devices()) {
    if (!filled.contains(device.id())) return base::InvalidArgument("device '{}' of the plan has no slot", device.id());
  }
  return absl::OkStatus();
}

std::vector<job::v1::MemberSlot> NumberDevices(const job::v1::ApplyPlanRequest& request) {
  const std::map<std::string, int> numbers = DeviceNumbers(request.plan());
  std::vector<job::v1::MemberSlot> slots(request.slots().begin(), request.slots().end());
  for (job::v1::MemberSlot& slot : slots) {
    if (slot.role() != job::v1::MEMBER_ROLE_TRAINER) continue;
    slot.set_stage(0);
    slot.set_index(numbers.at(slot.device()));
  }
  return slots;
}

bool CutPlacements(const std::set<std::string>& present, plan::v1::ExecutionPlan& plan) {
  NewIds ids;
  Repeated<plan::v1::Device> devices;
  for (const plan::v1::Device& device : plan.devices()) {
    if (!present.contains(device.id())) continue;
    *devices.Add() = device;
    ids[device.id()] = device.id();
  }
  if (devices.size() == plan.devices_size()) return true;
  plan.mutable_devices()->Swap(&devices);
  bool covers = true;
  for (plan::v1::Placement& placement : *plan.mutable_placements()) {
    covers = CutReplicas(present, placement) && covers;
    if (placement.has_sync()) CutSync(ids, *placement.mutable_sync());
  }
  return covers;
}

bool DevicesHoldState(const plan::v1::ExecutionPlan& plan, const std::set<std::string>& devices) {
  return std::ranges::all_of(plan.placements(), [&](const plan::v1::Placement& placement) {
    if (placement.sync().kind() == plan::v1::SYNC_KIND_PARAMETER_SERVER) return true;
    return std::ranges::any_of(placement.replicas(),
                               [&](const plan::v1::Replica& replica) { return devices.contains(replica.device()); });
  });
}

}  // namespace medley::worker

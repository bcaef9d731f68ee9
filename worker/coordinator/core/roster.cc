#include "worker/coordinator/core/roster.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "common/model/placement.h"
#include "common/model/rows_member.h"
#include "worker/coordinator/core/cut_sync.h"
#include "worker/coordinator/core/placed_roster.h"

namespace medley::worker {
namespace {

using job::v1::MEMBER_ROLE_SERVER;
using job::v1::MEMBER_ROLE_TRAINER;
using job::v1::MemberSlot;

absl::Status CheckSlot(const job::v1::ApplyPlanRequest& request, const MemberSlot& slot) {
  const plan::v1::ExecutionPlan& plan = request.plan();
  if (slot.member().empty()) return base::InvalidArgument("a slot of plan {} names no member", plan.generation());
  if (slot.role() == MEMBER_ROLE_SERVER) {
    if (slot.pool() != plan.servers().pool()) {
      return base::InvalidArgument("slot {}: pool {} is not the servers' pool {}", slot.member(), slot.pool(),
                                   plan.servers().pool());
    }
    return absl::OkStatus();
  }
  if (slot.role() != MEMBER_ROLE_TRAINER)
    return base::InvalidArgument("slot {} has neither the role trainer nor the role server", slot.member());
  if (IsPlaced(plan)) return absl::OkStatus();  // CheckDeviceSlots
  if (slot.stage() < 0 || slot.stage() >= plan.stages_size()) {
    return base::InvalidArgument("slot {}: stage {} does not exist, the plan has {} stages", slot.member(),
                                 slot.stage(), plan.stages_size());
  }
  for (const plan::v1::Group& group : plan.stages(slot.stage()).groups()) {
    if (group.pool() == slot.pool()) return absl::OkStatus();
  }
  return base::InvalidArgument("slot {}: stage {} has no group of pool {}", slot.member(), slot.stage(), slot.pool());
}

// Whether trainers of the stage pull rows; with Servers.in_trainers each of them has a shard.
bool PullsRows(const plan::v1::Stage& stage) {
  return std::ranges::any_of(stage.syncs(), [](const plan::v1::OperationSync& entry) {
    return entry.sync().kind() == plan::v1::SYNC_KIND_PARAMETER_SERVER;
  });
}

// The stages whose trainers have shards.
std::set<int> StagesWithShards(const plan::v1::ExecutionPlan& plan) {
  std::set<int> stages;
  for (int s = 0; s < plan.stages_size() && plan.servers().in_trainers(); ++s) {
    if (PullsRows(plan.stages(s))) stages.insert(s);
  }
  return stages;
}

absl::Status CheckShards(const plan::v1::ExecutionPlan& plan, const std::map<std::pair<int, std::string>, int>& units,
                         const std::set<int>& server_ranks, bool dense) {
  const int slots = static_cast<int>(server_ranks.size());
  if (!plan.servers().in_trainers()) {
    if (slots == plan.servers().units() && (slots == 0 || dense)) return absl::OkStatus();
    return base::InvalidArgument("the plan has {} servers, but there are {} slots for servers with indices from 0",
                                 plan.servers().units(), slots);
  }
  if (slots > 0) return base::InvalidArgument("the plan has its rows in trainers, but {} slots are for servers", slots);
  const std::set<int> stages = StagesWithShards(plan);
  int trainers = 0;
  for (const auto& [place, count] : units) trainers += stages.contains(place.first) ? count : 0;
  if (trainers == plan.servers().units()) return absl::OkStatus();
  return base::InvalidArgument("the plan has {} shards in trainers, but {} trainers of stages with tables",
                               plan.servers().units(), trainers);
}

// Whether trainers of the stage hold state: true unless parameter servers keep all its operations.
bool HoldsState(const plan::v1::Stage& stage) {
  std::set<int32_t> on_servers;
  for (const plan::v1::OperationSync& sync : stage.syncs()) {
    if (sync.sync().kind() != plan::v1::SYNC_KIND_PARAMETER_SERVER) return true;
    for (const plan::v1::OperationRange& range : sync.operations()) {
      for (int32_t i = range.first(); i < range.end(); ++i) on_servers.insert(i);
    }
  }
  for (const plan::v1::OperationRange& range : stage.operations()) {
    for (int32_t i = range.first(); i < range.end(); ++i) {
      if (!on_servers.contains(i)) return true;
    }
  }
  return false;
}

void CutGroups(plan::v1::Stage& stage, const std::map<std::string, int>& present) {
  double sum = 0;
  google::protobuf::RepeatedPtrField<plan::v1::Group> kept;
  for (plan::v1::Group& group : *stage.mutable_groups()) {
    const auto found = present.find(group.pool());
    if (found == present.end()) continue;
    plan::v1::Group& copy = *kept.Add();
    copy = group;
    copy.set_share(group.share() * found->second / std::max(1, group.units()));
    copy.set_units(found->second);
    sum += copy.share();
  }
  for (plan::v1::Group& group : kept) {
    group.set_share(sum > 0 ? group.share() / sum : 1.0 / kept.size());
  }
  stage.mutable_groups()->Swap(&kept);
}

// A plan with stages numbers the units of a pool over all stages (StageDeviceId), so a lost unit renames those after
// it. `slots`: of trainers, in order.
NewIds RenamedDevices(const std::vector<const MemberSlot*>& slots, const std::vector<std::string>& missing) {
  std::map<std::string, int> before, after;  // by pool
  NewIds ids;
  for (const MemberSlot* slot : slots) {
    if (slot->role() != MEMBER_ROLE_TRAINER) continue;
    const std::string old_id = model::StageDeviceId(slot->pool(), before[slot->pool()]++);
    if (std::find(missing.begin(), missing.end(), slot->member()) != missing.end()) continue;
    ids[old_id] = model::StageDeviceId(slot->pool(), after[slot->pool()]++);
  }
  return ids;
}

std::tuple<bool, int, int> Order(const MemberSlot& slot) {
  return {slot.role() == MEMBER_ROLE_SERVER, slot.stage(), slot.index()};
}

}  // namespace

absl::Status ValidateApply(const job::v1::ApplyPlanRequest& request) {
  const plan::v1::ExecutionPlan& plan = request.plan();
  if (plan.generation() < 1)
    return base::InvalidArgument("plan.generation must be 1 or more, not {}", plan.generation());
  if (plan.stages_size() == 0 && !IsPlaced(plan)) {
    return base::InvalidArgument("plan {} has neither stages nor placements", plan.generation());
  }
  if (IsPlaced(plan)) MEDLEY_RETURN_IF_ERROR(CheckDeviceSlots(request));
  std::set<std::string> names;
  std::map<std::pair<int, std::string>, int> units;  // (stage, pool)
  std::map<int, std::set<int>> ranks;                // by stage; -1: servers
  for (const MemberSlot& slot : request.slots()) {
    MEDLEY_RETURN_IF_ERROR(CheckSlot(request, slot));
    if (!names.insert(slot.member()).second)
      return base::InvalidArgument("two slots name the member {}", slot.member());
    const bool server = slot.role() == MEMBER_ROLE_SERVER;
    if (!server && IsPlaced(plan)) continue;  // CheckDeviceSlots
    if (!server) ++units[{slot.stage(), slot.pool()}];
    if (!ranks[server ? -1 : slot.stage()].insert(slot.index()).second) {
      return base::InvalidArgument("slot {}: another slot of its stage has index {}", slot.member(), slot.index());
    }
  }
  const auto dense = [](const std::set<int>& set) {
    return !set.empty() && *set.begin() == 0 && *set.rbegin() == static_cast<int>(set.size()) - 1;
  };
  for (int s = 0; s < plan.stages_size(); ++s) {
    for (const plan::v1::Group& group : plan.stages(s).groups()) {
      if (units[{s, group.pool()}] != group.units()) {
        return base::InvalidArgument("stage {} has {} units of pool {} in the plan, but {} slots", s, group.units(),
                                     group.pool(), units[{s, group.pool()}]);
      }
    }
    if (!dense(ranks[s])) return base::InvalidArgument("the indices of the slots of stage {} are not 0..n-1", s);
  }
  return CheckShards(plan, units, ranks[-1], dense(ranks[-1]));
}

namespace {

// The shards of the trainers in `fit`, by whose order they are numbered.
void AddShards(const std::set<int>& stages, const FindMember& find, RosterFit& fit) {
  std::vector<job::v1::Peer> shards;
  for (const job::v1::Peer& trainer : fit.peers) {
    if (!stages.contains(trainer.slot().stage())) continue;
    const std::string name = model::RowsMember(trainer.slot().member());
    const job::v1::Hello& hello = *find(name);
    job::v1::Peer& peer = shards.emplace_back();
    peer.mutable_slot()->set_member(name);
    peer.mutable_slot()->set_role(MEMBER_ROLE_SERVER);
    peer.mutable_slot()->set_pool(trainer.slot().pool());
    peer.mutable_slot()->set_index(static_cast<int>(shards.size()) - 1);
    peer.set_address(hello.address());
    peer.set_instance(hello.instance());
  }
  fit.plan.mutable_servers()->set_units(static_cast<int>(shards.size()));
  fit.peers.insert(fit.peers.end(), shards.begin(), shards.end());
}

}  // namespace

RosterFit FitPlan(const job::v1::ApplyPlanRequest& request, const FindMember& find) {
  RosterFit fit;
  fit.plan = request.plan();
  const bool placed = IsPlaced(request.plan());
  std::vector<MemberSlot> numbered;
  if (placed) numbered = NumberDevices(request);
  std::vector<const MemberSlot*> slots;
  for (const MemberSlot& slot : numbered) slots.push_back(&slot);
  if (!placed) {
    for (const MemberSlot& slot : request.slots()) slots.push_back(&slot);
  }
  std::stable_sort(slots.begin(), slots.end(), [](auto* a, auto* b) { return Order(*a) < Order(*b); });
  std::map<int, std::map<std::string, int>> present;
  std::set<std::string> devices;
  std::map<int, int> next_rank;
  bool servers_whole = true;
  const std::set<int> with_shards = StagesWithShards(request.plan());
  for (const MemberSlot* slot : slots) {
    const bool server = slot->role() == MEMBER_ROLE_SERVER;
    const job::v1::Hello* hello = find(slot->member());
    const bool lacks_shard =
        !server && with_shards.contains(slot->stage()) && find(model::RowsMember(slot->member())) == nullptr;
    if (hello == nullptr || hello->role() != slot->role() || hello->pool() != slot->pool() || lacks_shard) {
      fit.missing.push_back(slot->member());
      servers_whole = servers_whole && !server;
      continue;
    }
    job::v1::Peer& peer = fit.peers.emplace_back();
    *peer.mutable_slot() = *slot;
    peer.mutable_slot()->set_index(next_rank[server ? -1 : slot->stage()]++);
    peer.set_address(hello->address());
    peer.set_instance(hello->instance());
    if (!server) ++present[slot->stage()][slot->pool()];
    if (!server) devices.insert(slot->device());
  }
  fit.covers = servers_whole;
  if (placed) {
    fit.covers = CutPlacements(devices, fit.plan) && fit.covers;
    return fit;
  }
  for (int s = 0; s < fit.plan.stages_size(); ++s) {
    fit.covers = fit.covers && present.contains(s);
    CutGroups(*fit.plan.mutable_stages(s), present[s]);
  }
  if (request.plan().servers().in_trainers()) AddShards(with_shards, find, fit);
  if (fit.missing.empty()) return fit;
  const NewIds ids = RenamedDevices(slots, fit.missing);
  for (plan::v1::Stage& stage : *fit.plan.mutable_stages()) {
    for (plan::v1::OperationSync& sync : *stage.mutable_syncs()) CutSync(ids, *sync.mutable_sync());
  }
  return fit;
}

bool StateSurvives(const plan::v1::ExecutionPlan& plan, const std::vector<job::v1::Peer>& peers,
                   const std::set<std::string>& survivors) {
  std::set<int> held;
  std::set<std::string> devices;
  for (const job::v1::Peer& peer : peers) {
    const bool alive = survivors.contains(peer.slot().member());
    if (peer.slot().role() == MEMBER_ROLE_SERVER) {
      if (!alive) return false;
    } else if (alive) {
      held.insert(peer.slot().stage());
      devices.insert(peer.slot().device());
    }
  }
  if (IsPlaced(plan)) return DevicesHoldState(plan, devices);
  for (int s = 0; s < plan.stages_size(); ++s) {
    if (HoldsState(plan.stages(s)) && !held.contains(s)) return false;
  }
  return true;
}

}  // namespace medley::worker

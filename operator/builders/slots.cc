#include "operator/builders/slots.h"

#include <algorithm>
#include <set>

#include "common/model/execution_plan.h"

namespace medley::ops {
namespace {

// The slots of a plan, without pod names.
std::vector<MemberSlot> UnnamedSlots(const model::ExecutionPlan& plan) {
  std::vector<MemberSlot> places;
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    int rank = 0;
    for (const model::Group& group : plan.stages[s].groups) {
      for (int i = 0; i < group.units; ++i) {
        places.push_back({"", Role::kTrainer, group.pool, static_cast<int>(s), rank++});
      }
    }
  }
  for (size_t d = 0; d < plan.devices.size(); ++d) {
    const model::Device& device = plan.devices[d];
    places.push_back({"", Role::kTrainer, device.pool, 0, static_cast<int>(d), {}, device.id});
  }
  if (plan.servers && !plan.servers->in_trainers) {
    for (int i = 0; i < plan.servers->units; ++i) places.push_back({"", Role::kServer, plan.servers->pool, 0, i});
  }
  return places;
}

std::string NewName(std::string_view job, const MemberSlot& place, const std::set<std::string>& taken) {
  for (int n = place.index;; ++n) {
    std::string name = place.role == Role::kServer ? ServerName(job, n) : TrainerName(job, place.stage, place.pool, n);
    if (!taken.contains(name)) return name;
  }
}

}  // namespace

std::vector<MemberSlot> AssignSlots(std::string_view job, const model::ExecutionPlan& plan,
                                    const std::vector<MemberSlot>& held, const std::vector<std::string>& reserved,
                                    const std::map<std::string, std::string>& zones) {
  std::vector<MemberSlot> places = UnnamedSlots(plan);
  for (MemberSlot& place : places) {
    if (const auto zone = zones.find(place.pool); zone != zones.end()) place.zone = zone->second;
  }
  std::vector<bool> used(held.size(), false);
  std::set<std::string> taken(reserved.begin(), reserved.end());
  for (const MemberSlot& slot : held) taken.insert(slot.member);
  const auto take = [&](MemberSlot& place, const auto& fits) {
    for (size_t i = 0; i < held.size() && place.member.empty(); ++i) {
      if (used[i] || held[i].role != place.role || held[i].pool != place.pool || !fits(held[i])) continue;
      if (!place.zone.empty() && held[i].zone != place.zone) continue;
      used[i] = true;
      place.member = held[i].member;
    }
  };
  for (MemberSlot& place : places) {
    take(place, [&](const MemberSlot& h) {
      if (!place.device.empty() || !h.device.empty()) return h.device == place.device;
      return h.stage == place.stage && h.index == place.index;
    });
  }
  for (MemberSlot& place : places) {
    if (place.member.empty()) take(place, [&](const MemberSlot& h) { return h.stage == place.stage; });
  }
  for (MemberSlot& place : places) {
    if (place.member.empty()) take(place, [](const MemberSlot&) { return true; });
  }
  for (MemberSlot& place : places) {
    if (!place.member.empty()) continue;
    place.member = NewName(job, place, taken);
    taken.insert(place.member);
  }
  return places;
}

std::map<std::string, int> LeavingUnits(const std::vector<MemberSlot>& before, const std::vector<MemberSlot>& now) {
  const auto members = [](const std::vector<MemberSlot>& slots) {
    std::set<std::string> names;
    for (const MemberSlot& slot : slots) names.insert(slot.member);
    return names;
  };
  const std::set<std::string> old = members(before), staying = members(now);
  std::set<std::string> asked;  // pools of new pods
  for (const MemberSlot& slot : now) {
    if (!old.contains(slot.member)) asked.insert(slot.pool);
  }
  std::map<std::string, int> leaving;
  for (const MemberSlot& slot : before) {
    if (asked.contains(slot.pool) && !staying.contains(slot.member)) ++leaving[slot.pool];
  }
  return leaving;
}

bool SameZones(const std::vector<MemberSlot>& slots, const std::map<std::string, std::string>& zones) {
  return std::all_of(slots.begin(), slots.end(), [&](const MemberSlot& slot) {
    const auto zone = zones.find(slot.pool);
    return zone == zones.end() || zone->second.empty() || zone->second == slot.zone;
  });
}

}  // namespace medley::ops

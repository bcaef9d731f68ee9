#include "worker/coordinator/core/members.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/model/rows_member.h"
#include "worker/coordinator/core/state.h"

namespace medley::worker::members {
namespace {

constexpr size_t kMaxMembers = 4096;

RosterFit FitWith(const CoreState& view, const job::v1::ApplyPlanRequest& request, Use use, bool standbys) {
  const std::optional<GenerationInfo>& active = view.generations.active;
  RosterFit fit = FitPlan(request, [&](const std::string& name) -> const job::v1::Hello* {
    const ConnectedMember* member = Find(view.members, name);
    if (member == nullptr || member->released) return nullptr;
    if (member->leaving && use != Use::kAll) return nullptr;
    if (use == Use::kHolders && (!active || !active->members.contains(name))) return nullptr;
    if (!standbys && standing_by::StandsBy(view, name)) return nullptr;
    return &member->hello;
  });
  const std::vector<int>& legal = view.options.legal_units;
  const bool fits = legal.empty() || std::ranges::find(legal, static_cast<int>(fit.peers.size())) != legal.end();
  fit.covers = fit.covers && fits;
  if (!standbys) std::erase_if(fit.missing, [&](const auto& name) { return standing_by::StandsBy(view, name); });
  return fit;
}

}  // namespace

const ConnectedMember* Find(const MembersState& members, const std::string& name) {
  const auto found = members.all.find(name);
  return found == members.all.end() ? nullptr : &found->second;
}

const ConnectedMember* Connected(const MembersState& members, const job::v1::Peer& peer) {
  const ConnectedMember* member = Find(members, peer.slot().member());
  return member == nullptr || member->hello.instance() != peer.instance() ? nullptr : member;
}

bool AnyStays(const MembersState& members) {
  return std::any_of(members.all.begin(), members.all.end(), [](const auto& at) { return !at.second.leaving; });
}

std::map<std::string, int> UnitsByPool(const MembersState& members) {
  std::map<std::string, int> units;
  for (const auto& [name, member] : members.all) {
    if (!model::IsRowsMember(name)) ++units[member.hello.pool()];
  }
  return units;
}

RosterFit Fit(const CoreState& view, const job::v1::ApplyPlanRequest& request, Use use) {
  const bool all = use == Use::kAll;
  RosterFit fit = FitWith(view, request, use, all);
  if (fit.covers || all || view.standing_by.standbys.all().empty()) return fit;
  RosterFit slow = FitWith(view, request, use, true);  // slow is better than not at all
  return slow.covers ? slow : fit;
}

bool OnlyLeaversMissing(const MembersState& members, const RosterFit& fit) {
  return fit.covers && std::all_of(fit.missing.begin(), fit.missing.end(), [&](const std::string& name) {
           const ConnectedMember* member = Find(members, name);
           return member != nullptr && member->leaving;
         });
}

bool MayConnect(const MembersState& members, const std::string& name, Effects& out) {
  if (!name.empty() && (members.all.size() < kMaxMembers || members.all.contains(name))) return true;
  out.Log(true,
          fmt::format("refused the session of member '{}': the name is empty or the job has too many members", name));
  return false;
}

void Connect(MembersState& own, const job::v1::Hello& hello, base::SteadyTime now) {
  const bool again = own.all.contains(hello.member());
  ConnectedMember& member = own.all[hello.member()];
  member.hello = hello;
  if (!again) member.since = now;
}

void Remove(MembersState& own, const std::string& name) { own.all.erase(name); }

bool Leave(MembersState& own, const std::string& name) {
  const auto found = own.all.find(name);
  if (found == own.all.end() || found->second.leaving) return false;
  return found->second.leaving = true;
}

void NoteFault(MembersState& own, const std::string& name, const job::v1::Fault& fault) {
  const auto found = own.all.find(name);
  if (found == own.all.end()) return;
  found->second.fault = fault.message();
  found->second.fault_generation = fault.generation();
}

std::string FaultIn(const ConnectedMember& member, int64_t generation) {
  return member.fault_generation == generation ? member.fault : "";
}

void MarkReleased(MembersState& own, const std::string& name) {
  if (const auto found = own.all.find(name); found != own.all.end()) found->second.released = true;
}

void Release(MembersState& own, const std::string& name, int exit_code, const std::string& reason, Effects& out) {
  const auto found = own.all.find(name);
  if (found == own.all.end()) return;
  found->second.released = true;
  job::v1::SessionResponse message;
  message.mutable_release()->set_exit_code(exit_code);
  message.mutable_release()->set_reason(reason);
  out.Add(SendCommand{name, found->second.hello.instance(), std::move(message)});
}

void ReleaseAll(MembersState& own, int exit_code, const std::string& reason, Effects& out) {
  for (const auto& [name, member] : own.all) Release(own, name, exit_code, reason, out);
}

}  // namespace medley::worker::members

// The processes that are connected, which of them are leaving, and which of them can run a plan.
//
// Data in: sessions, announcements that members will leave. Data out: releases.
#pragma once

#include <map>
#include <string>

#include "worker/coordinator/core/effects.h"
#include "worker/coordinator/core/generation.h"
#include "worker/coordinator/core/roster.h"

namespace medley::worker {

struct CoreState;

struct MembersState {
  std::map<std::string, ConnectedMember> all;  // by member
};

namespace members {

const ConnectedMember* Find(const MembersState& members, const std::string& name);
// The member, if it is still the process of this peer; otherwise null.
const ConnectedMember* Connected(const MembersState& members, const job::v1::Peer& peer);
bool AnyStays(const MembersState& members);
std::map<std::string, int> UnitsByPool(const MembersState& members);

// Which members may fill a slot: holders of the state that stay, all members that stay, or leaving members too.
enum class Use { kHolders, kStaying, kAll };
// Without slow members, unless the plan cannot run without them.
RosterFit Fit(const CoreState& view, const job::v1::ApplyPlanRequest& request, Use use);
// Whether the plan can run, and lacks only members that leave.
bool OnlyLeaversMissing(const MembersState& members, const RosterFit& fit);

// Whether another session can be taken in. Warns if not.
bool MayConnect(const MembersState& members, const std::string& name, Effects& out);
void Connect(MembersState& own, const job::v1::Hello& hello, base::SteadyTime now);
void Remove(MembersState& own, const std::string& name);
// False: it is not connected, or was known to leave.
bool Leave(MembersState& own, const std::string& name);
void NoteFault(MembersState& own, const std::string& name, const job::v1::Fault& fault);
// What the process said of its last fault, if that was in this generation; otherwise empty.
std::string FaultIn(const ConnectedMember& member, int64_t generation);
// The generation in force has no place for these members. Does not send the release.
void MarkReleased(MembersState& own, const std::string& name);
// `exit_code` 1: its pod ends with an error, and a new pod takes its place.
void Release(MembersState& own, const std::string& name, int exit_code, const std::string& reason, Effects& out);
void ReleaseAll(MembersState& own, int exit_code, const std::string& reason, Effects& out);

}  // namespace members
}  // namespace medley::worker

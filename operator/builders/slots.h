// Assigns pods to the slots of a plan. Pure.
//
// Names are deterministic (JOB-STAGE-POOL-N, JOB-server-N). A switch to another plan reuses pods of the same role and
// pool, whatever their stage was, so that only additional slots need free units: a job can change the stages of a pool
// that is at its limit. Source: docs/use/api.md, "Objects of a job".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/model/forward.h"
#include "operator/records/member_slot.h"

namespace medley::ops {

// Returns the slots of trainers by (stage, index) or by device, then those of servers by index. `held`: the slots whose
// pods exist or are being created. Each of these pods is used at most once: for the same slot or device if the plan has
// it, else for a slot of the same role and pool. `reserved`: further names that no new pod may get. `zones`: by pool,
// the zone that its pods are pinned to, if any; a pod that is pinned to another zone, or to none, is not used again.
std::vector<MemberSlot> AssignSlots(std::string_view job, const model::ExecutionPlan& plan,
                                    const std::vector<MemberSlot>& held = {},
                                    const std::vector<std::string>& reserved = {},
                                    const std::map<std::string, std::string>& zones = {});

// How many of the slots `before` have a pod that no slot of `now` has, by pool, of the pools in which `now` has pods
// that `before` has not: there a switch would wait for units which it frees itself. Others are absent.
std::map<std::string, int> LeavingUnits(const std::vector<MemberSlot>& before, const std::vector<MemberSlot>& now);

// True when every slot may stay where it is: `zones` (by pool) pins its pool to its own zone, or to none.
bool SameZones(const std::vector<MemberSlot>& slots, const std::map<std::string, std::string>& zones);

}  // namespace medley::ops

// Which pod takes which place of a plan. Pure.
//
// Names are deterministic (JOB-STAGE-POOL-N, JOB-server-N). A move to another plan reuses pods of
// the same role and pool, whatever stage they held before, so that make-before-break needs units
// only for what is really new: a pool at its limit can change its stage. Sources: api.md, "Objects
// the operator makes".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/model/execution_plan.h"
#include "operator/records/member_slot.h"

namespace medley::ops {

// Trainers by (stage, index), then servers by index. `held`: the slots whose pods exist or are
// being made; each is used at most once, preferred in this order: the same place, then the same
// role and pool. `reserved`: further pod names that may not be given to a new pod. `zones`: by pool, the zone that its
// pods are pinned to, if any; a pod that is pinned to another zone, or to none, is not used again.
std::vector<MemberSlot> AssignSlots(std::string_view job, const model::ExecutionPlan& plan,
                                    const std::vector<MemberSlot>& held = {},
                                    const std::vector<std::string>& reserved = {},
                                    const std::map<std::string, std::string>& zones = {});

}  // namespace medley::ops

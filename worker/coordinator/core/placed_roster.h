// The part of roster.h that plans with devices and placements need. Pure functions, thread-safe; internal to core/.
#pragma once

#include <absl/status/status.h>

#include <set>
#include <string>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// Whether the plan consists of placements.
inline bool IsPlaced(const plan::v1::ExecutionPlan& plan) { return plan.placements_size() > 0; }

// Checks that each device of the plan is the slot of one trainer, in the device's pool. Errors: InvalidArgument naming
// the slot or the device.
absl::Status CheckDeviceSlots(const job::v1::ApplyPlanRequest& request);

// The slots of a plan with placements in one form: trainers have stage 0, and the number of their device in the plan as
// index.
std::vector<job::v1::MemberSlot> NumberDevices(const job::v1::ApplyPlanRequest& request);

// Removes the devices that are not in `present`: their replicas' parts of the batch are divided among the others, and
// groups, roots and levels keep those of their devices that are left. Returns whether every placement has a replica.
bool CutPlacements(const std::set<std::string>& present, plan::v1::ExecutionPlan& plan);

// Whether a trainer in `devices` holds each part of the state that is not on parameter servers.
bool DevicesHoldState(const plan::v1::ExecutionPlan& plan, const std::set<std::string>& devices);

}  // namespace medley::worker

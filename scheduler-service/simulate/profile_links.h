// The links of a simulation: between pools, as the profile has them, or between the devices of a cluster. Pure.
#pragma once

#include <absl/status/status.h>

#include <vector>

#include "common/model/forward.h"
#include "common/program/program.h"
#include "scheduler-service/simulate/durations.h"
#include "scheduler-service/simulate/from_profile.h"

namespace medley::sched {

// Fills in locations, links and cards. Each pool is a location. Returns by link whether its speed is known. The order
// of the profile's links does not matter.
std::vector<bool> FillPoolLinks(const program::Program& program, const model::Profile& profile, Durations& out);

// Each device is a location, and all links are known. Errors: InvalidArgument for a device that has no index.
absl::Status FillDeviceLinks(const program::Program& program, const DeviceLinks& links, Durations& out);

// Fills in what messages cost the processors, as the profile has it. The order of its links does not matter.
void FillMessageCpu(const program::Program& program, const model::Profile& profile, Durations& out);

}  // namespace medley::sched

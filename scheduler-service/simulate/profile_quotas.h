// CPU quotas as a profile has them, and when their periods begin. Pure.
#pragma once

#include <map>
#include <string>

#include "common/model/forward.h"
#include "scheduler-service/simulate/durations.h"

namespace medley::sched {

// By pool: the part of the time that its units compute under their CPU quota, in (0, 1]; 1 without one. A CPU limit
// below one core says it (Profile::units). Else it is the ratio of burstSeconds to computeSeconds over all operations,
// because single ones are measured less precisely.
std::map<std::string, double> QuotaParts(const model::Profile& profile);

// Whether some device has a quota. Its periods begin at other times than those of other devices, which nobody chooses;
// draw `number` of them is evenly spread over all devices and numbers.
bool HasQuota(const Durations& durations);
void DrawPhases(int number, Durations& durations);

}  // namespace medley::sched

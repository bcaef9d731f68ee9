// Converts the list of planners to protobuf.
#pragma once

#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planning/registry.h"

namespace medley::sched {

// Each name once, with what it takes for each of its objectives.
void ToProto(const Registry& registry, scheduler::v1::ListPlannersResponse& message);

}  // namespace medley::sched

// Converts a Pareto front to protobuf.
#pragma once

#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/planner/pareto.h"

namespace medley::sched {

void ToProto(const ParetoResult& result, scheduler::v1::ParetoResponse& message);

}  // namespace medley::sched

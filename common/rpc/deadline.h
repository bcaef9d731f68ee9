// Deadlines for gRPC on the monotonic clock. Internal to common/rpc.
#pragma once

#include <grpc/support/time.h>

#include "common/base/clock.h"

namespace medley::rpc {

inline gpr_timespec DeadlineIn(base::nanoseconds timeout) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(timeout.count(), GPR_TIMESPAN));
}

}  // namespace medley::rpc

// What every program must fulfil. Pure.
#pragma once

#include <absl/status/status.h>

#include "common/program/program.h"

namespace medley::program {

// Checks that
//   no list waits for another in a circle, over any number of open steps;
//   every Send has one Receive of the same flow and micro-batch;
//   the replicas of a group run their collectives in one order;
//   every block with dense parameters has one Update on each replica, after the reduction of its gradients.
// Compile does it; a test or a reader of foreign programs may repeat it. Errors: Internal, a sentence that names the
// operation and the device.
absl::Status Check(const Program& program);

}  // namespace medley::program

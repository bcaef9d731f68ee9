// A time that no plan of a question falls below. Pure.
#pragma once

#include "scheduler-service/devices/problem.h"

namespace medley::sched {

// Seconds of a step, whatever the placement, the shares and the order; messages and reductions count nothing. The
// larger of two bounds:
//   work: the devices share all operations. For any weights of devices w >= 0 that sum to 1, the busiest device
//     computes for at least the sum over operations of min over devices of w x seconds: the dual of the linear program
//     that spreads work over devices. The weights are improved by multiplicative updates, so every answer is a bound.
//   path: a sample passes the longest path from parameters to the loss and back, and each operation of it takes as long
//     as the replica that has the sample. The mean over all samples is at least the sum over the path of
//     min over shares s of sum over devices of s x seconds(s). Only where a step has one micro-batch; otherwise others
//     overlap.
struct GraphBound {
  double work = 0;
  double path = 0;
  double seconds() const { return work > path ? work : path; }
};
GraphBound BoundOfGraph(const DeviceProblem& problem);

}  // namespace medley::sched

// How a set of devices adds: groups, leaders, orders and algorithms (thesis, section 4.2). Pure.
//
// The seconds of an arrangement are model::HierarchicalSeconds, which the simulator uses too, so comparing arrangements
// needs no simulation.
#pragma once

#include <vector>

#include "common/base/rng.h"
#include "common/model/allreduce_algorithm.h"
#include "scheduler-service/devices/plans.h"
#include "scheduler-service/devices/problem.h"
#include "scheduler-service/hierarchy/groups.h"

namespace medley::sched {

struct Arrangement {
  std::vector<int> order;  // the devices, as replicas of the plan: a ring passes them in this order
  // Groups of devices, innermost level first; the first of a group in `order` is its leader. Empty: one ring of all.
  std::vector<Grouping> levels;
  std::vector<model::AllreduceAlgorithm> algorithms;  // of each level, and then among the outermost groups
  double seconds = 0;                                 // of one allreduce
};

// How groups are formed.
enum class Formation {
  kBest,     // the fastest of all below but kRandom, and of chunks of a ring of about sqrt(n) devices, and of no groups
  kOneRing,  // no groups, devices in the given order
  kLinks,    // Algorithm 1: by the order of magnitude of links, then of computing power
  kPools,    // one group for each pool
  kEqualPower,  // unlike devices form about sqrt(n) groups of equal power
  kRandom,      // about sqrt(n) groups, drawn at random
};

// Arranges an allreduce of `bytes` among devices of the problem (not empty). With kBest and at most kExactDevices
// devices, groups are those of ExactArrangement. From 27 devices on, groups of about the cube root are tried as well,
// in two levels below the outermost.
Arrangement Arrange(const DeviceProblem& problem, const std::vector<int>& devices, double bytes, Formation formation,
                    base::Rng& rng);
// kBest without the exact search, whatever the number of devices.
Arrangement ArrangeBySearch(const DeviceProblem& problem, const std::vector<int>& devices, double bytes);

// Local search around an arrangement without or with one level of groups: moves single devices to other groups or into
// groups of their own, and joins groups, while that is faster. Returns the arrangement itself where it has two levels,
// or more than kMostImproved devices.
inline constexpr size_t kMostImproved = 64;
Arrangement Improved(const DeviceProblem& problem, const Arrangement& arrangement, double bytes);

// The fastest of all partitions into groups, all choices of one leader for each, and all algorithms within groups and
// among leaders; the order within a group is that of RingOrder, beginning with the leader, and the same among leaders.
// At most kExactDevices devices.
inline constexpr size_t kExactDevices = 9;
Arrangement ExactArrangement(const DeviceProblem& problem, const std::vector<int>& devices, double bytes);

// One ring over the devices in the given order: what a job without this planner has.
Arrangement OneRing(const DeviceProblem& problem, const std::vector<int>& devices, double bytes);

// No arrangement of the devices takes fewer seconds: every device must receive `bytes` from one other.
double LeastReductionSeconds(const DeviceProblem& problem, const std::vector<int>& devices, double bytes);

// The plan in which replicas on these devices, with balanced shares, add in this way. Devices that would get no sample
// are left out.
DataParallel WithShares(const DeviceProblem& problem, const Arrangement& arrangement);

}  // namespace medley::sched

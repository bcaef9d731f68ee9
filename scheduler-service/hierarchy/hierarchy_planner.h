// The planner `hierarchy`, and its decision which devices take part.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler-service/hierarchy/arrange.h"
#include "scheduler-service/planning/planner.h"

namespace medley::sched {

std::unique_ptr<Planner> MakeHierarchyPlanner();

// What the planner does for the question of the judge, with groups formed in this way. Errors: InvalidArgument for an
// asynchronous schedule; Cancelled.
absl::StatusOr<Candidate> PlanReplicas(Judge& judge, Formation formation, uint64_t seed, const Budget& limits);

// Devices that take part or are left out together: those of one order of magnitude of link cost, and then of computing
// power, the most powerful group first. At most kMostDecided groups: where finer ones are more, coarser ones.
inline constexpr size_t kMostDecided = 10;
Grouping GroupsToDecide(const DeviceProblem& problem, double bytes);

// Seconds of a step of all replicas on `devices`: the longest of their computations with balanced shares, and then the
// allreduce (docs/papers/thesis.md derives it from Equation 3.15).
double ClosedFormSeconds(const DeviceProblem& problem, const Arrangement& arrangement);
// No plan with replicas on exactly these devices takes less, whatever its shares, arrangement and buckets: a step waits
// for the longest computation, and for the sum to reach every device.
double LeastStepSeconds(const DeviceProblem& problem, const std::vector<int>& devices, double bytes);

struct Participation {
  Grouping groups;               // GroupsToDecide
  std::vector<bool> takes_part;  // by group
  Arrangement arrangement;       // of the devices that take part
  double seconds = 0;            // ClosedFormSeconds
  int64_t pruned = 0;            // sets of groups that LeastStepSeconds excluded
};
// The groups with which ClosedFormSeconds is smallest, of all sets of them; of those that were compared when the limits
// end the search, all groups together at least.
Participation ChooseGroups(const DeviceProblem& problem, double bytes, Formation formation, base::Rng& rng,
                           const Budget* limits = nullptr);

}  // namespace medley::sched

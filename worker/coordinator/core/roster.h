// Which members can carry a plan, and whether the state survives without some of them. Pure functions, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// The plan names pods consistently: every group has as many trainer slots as units, ranks 0..n-1 in each stage, servers
// likewise, no pod twice. Errors: InvalidArgument naming the slot.
absl::Status ValidateApply(const job::v1::ApplyPlanRequest& request);

// A plan cut down to the members that are there.
struct RosterFit {
  plan::v1::ExecutionPlan plan;      // units and shares of what is there; shares of a stage sum to 1
  std::vector<job::v1::Peer> peers;  // trainers by (stage, index), then servers; indices run from 0 without holes
  std::vector<std::string> missing;  // pods of empty slots, in the order of the slots
  bool covers = false;               // every stage has a trainer and every shard its server
  bool full() const { return missing.empty(); }
};

// `find` answers the Hello of a member that may be used, or nullptr. A Hello of another role or pool than the slot's
// does not fill it.
using FindMember = std::function<const job::v1::Hello*(const std::string& member)>;
RosterFit FitPlan(const job::v1::ApplyPlanRequest& request, const FindMember& find);

// Whether the holders in `survivors` have every piece of the state of a generation: a trainer of each stage with weights
// outside the servers, and every shard.
bool StateSurvives(const plan::v1::ExecutionPlan& plan, const std::vector<job::v1::Peer>& peers,
                   const std::set<std::string>& survivors);

}  // namespace medley::worker

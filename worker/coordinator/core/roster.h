// Decides which members can run a plan, and whether the state survives the loss of some. Pure functions, thread-safe.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// Checks that the slots match the plan: every group has as many trainer slots as units, the ranks of each stage are
// 0..n-1, the same holds for servers, and no pod has two slots. In a plan with placements, each device is one slot.
// Shards in trainers have no slots.
// Errors: InvalidArgument naming the slot.
absl::Status ValidateApply(const job::v1::ApplyPlanRequest& request);

// A plan cut down to the usable members.
struct RosterFit {
  // With the units, devices and shares of these members; the shares of a stage or placement sum to 1.
  plan::v1::ExecutionPlan plan;
  // Trainers in the order of the program's devices: by (stage, index), or as plan.devices with stage 0; then servers.
  // Indices run from 0 without gaps.
  std::vector<job::v1::Peer> peers;
  std::vector<std::string> missing;  // pods of the slots that no member fills, in the order of the slots
  bool covers = false;               // whether every stage or placement has a trainer and every shard its server
  bool full() const { return missing.empty(); }
};

// Returns the Hello of a member that may be used, or nullptr.
using FindMember = std::function<const job::v1::Hello*(const std::string& member)>;
// Fills the slots of the plan. A member whose role or pool differs from the slot's does not fill it, nor does a trainer
// that is to have a shard and whose model::RowsMember is not usable. Such members follow the trainers as servers.
RosterFit FitPlan(const job::v1::ApplyPlanRequest& request, const FindMember& find);

// Whether the members in `survivors` together hold the whole state of a generation: every shard, and one trainer of
// each stage or placement that has weights outside the servers.
bool StateSurvives(const plan::v1::ExecutionPlan& plan, const std::vector<job::v1::Peer>& peers,
                   const std::set<std::string>& survivors);

}  // namespace medley::worker

// Disruption: the job leaves nodes that are about to be lost before its pods die, and trainers that stay slow.
//
//   notice -> the same plan on other nodes, when they have room (without asking the planner)
//          -> else, unless elasticity is disabled, another plan without these nodes, whatever it saves and however
//             recent the last move is
//          -> else the coordinator is notified in time, so that a checkpoint makes the loss cheap
//
// New pods are created first; the old ones are deleted when the new generation is in force, as in every rescale.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/training_job.h"
#include "operator/records/member_slot.h"
#include "operator/records/notices.h"

namespace medley::ops::lifecycle {

class Pass;

struct DisruptionState {
  static constexpr char kOwner[] = "disruption";
  std::map<std::string, base::SteadyTime> noticed_since;    // members whose loss is certain, by pod UID
  std::map<std::string, base::SteadyTime> not_ready_since;  // nodes
  std::set<std::string> published;                          // notices: pod UID and sign
  std::optional<base::SteadyTime> evacuation_asked_at;      // when a plan without the nodes was last asked for
  std::set<std::string> drained;                            // pod UIDs that the coordinator was asked to drain
  // The most slow trainers that are replaced together: no more units were free. Absent: all.
  std::optional<size_t> most_slow;
};

// Why the pod, of a member or a coordinator, will be lost soon; nothing: it will not.
std::optional<Notice> NoticeFor(Pass& pass, const kube::Object& pod);

// The nodes of trainers that stay slow: other pods rather run elsewhere.
std::vector<std::string> NodesOfSlowTrainers(Pass& pass);

// Returns true if a plan without the nodes that are about to be lost was accepted.
absl::StatusOr<bool> EvacuateNodes(Pass& pass, const TrainingJob& job);

// Gives the members of the plan that are not among `staying` other pods. `count`: of them. False: the units are not
// available.
absl::StatusOr<bool> Relocate(Pass& pass, const TrainingJob& job, Reason reason, size_t count,
                              const std::vector<MemberSlot>& staying);

// The slots of the plan whose pods are not disrupted and whose names are not lost: another plan may keep them.
std::vector<MemberSlot> StayingSlots(Pass& pass);

void ForgetDrained(Pass& pass);  // another coordinator leads, which was not asked
// Notifies the coordinator of members that leave soon. It continues without them at the next boundary, or takes a
// checkpoint at once if it cannot continue without them.
absl::Status DrainLeaving(Pass& pass);

}  // namespace medley::ops::lifecycle

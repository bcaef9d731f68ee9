// Succession: another coordinator takes the place of one that is lost, or will be (docs/adr/0015).
//
//   notice (drain, spot, eviction) -> a second pod with the next term; it asks the first one to hand over, and leads
//                                     when the first one has ended
//   lost (pod deleted, node dead)  -> a pod with the next term; it takes over from the journal
//
// The members keep their state and follow. Jobs without a checkpoint volume have no journal: restarts.h. The record in
// JOB-plan names the new pod before it is created.
//
// Invariant: at most one pod is created with a term, because a pod that has left the API may still run. So a pod that
// may have existed is created again under the next term only.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "kube/object.h"
#include "operator/api/training_job.h"
#include "operator/records/plan_record.h"

namespace medley::ops::lifecycle {

class Pass;

struct SuccessionState {
  static constexpr char kOwner[] = "succession";
  int64_t unused_term = 0;  // stored by this process, and no pod of this term can exist yet; 0: none
};

// Whether another coordinator can continue this one's job.
bool CanTakeOver(const TrainingJob& job, const PlanRecord& record);
// The node of the pod does not answer: the pod's deletion is overdue, or the node has not been ready for some time.
bool IsLost(Pass& pass, const kube::Object& pod);
// The pod is created for the job's coordinator, or follows to it.
bool Follows(const Pass& pass, const kube::Object& member);

// Gives the record's coordinator the next term; the caller stores the record. It keeps its pod name, which another pod
// may have until it is deleted, unless that pod is lost.
void RenewCoordinator(Pass& pass, const TrainingJob& job, PlanRecord& record);

// True: another coordinator takes over, and this pass has nothing more to do. `pod`: of the coordinator; may be null.
absl::StatusOr<bool> ReplaceCoordinator(Pass& pass, const TrainingJob& job, const kube::ObjectPtr& pod);
// For a job that is being suspended, which starts nothing: the successor, if it runs, becomes the coordinator when the
// former one has ended, is lost, or `gives_no_answer`. True: it did, and this pass has nothing more to do.
absl::StatusOr<bool> PromoteSuccessor(Pass& pass, const TrainingJob& job, bool gives_no_answer);
// The pod of the record's coordinator has a process, or will have one, that can continue the job.
bool MayLead(Pass& pass, const TrainingJob& job);
// Creates the pod of the record's coordinator, which does not exist, under a term that no pod has had.
absl::Status CreateCoordinator(Pass& pass, const TrainingJob& job);
// Another operator may have given the unused term to a pod.
void ForgetUnusedTerm(Pass& pass);
// Creates the second pod when the coordinator's own will be lost.
absl::Status EnsureSuccessor(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle

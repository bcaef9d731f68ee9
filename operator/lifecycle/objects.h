// The objects of a job that are not pods: those that every job needs, and those that follow its plan.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/builders/credentials.h"
#include "operator/builders/pod_group.h"
#include "operator/lifecycle/keeping.h"
#include "operator/lifecycle/taken_names.h"

namespace medley::ops::lifecycle {

class Pass;

struct ObjectsState {
  static constexpr char kOwner[] = "objects";
  KeptObject kept_secret;
  KeptObject kept_spec;
  JobCredentials credentials;  // with which the job's processes authenticate each other; empty: not chosen yet
  std::string secret;          // the name of the Secret with them
  // The values for which the objects that follow the plan were last written.
  struct Budget {
    int members = 0;
    int max_unavailable = 1;
    bool operator==(const Budget&) const = default;
  };
  struct Group {
    std::optional<PodGroupKind> kind;
    int members = 0;
    bool operator==(const Group&) const = default;
  };
  std::optional<Budget> budget;
  std::optional<Group> group;
  std::optional<PodGroupKind> joined;   // the kind of group that new pods join; absent: none
  std::optional<int> members_in_force;  // as last known
};

// Creates and keeps (keeping.h) the token Secret, the spec ConfigMap, the Service and the NetworkPolicy. Secret and
// ConfigMap are immutable, so they can only be deleted, and are created again as they were. A job that has a plan goes
// on when one of them cannot be restored.
absl::Status KeepBaseObjects(Pass& pass, const TrainingJob& job);
// The job's credentials: those of its pods if they follow from the operator's keys, else those that a new job gets.
absl::StatusOr<JobCredentials> ChooseCredentials(Pass& pass, const TrainingJob& job);
// This and the next function need a plan. The budget counts the members of the plan in force, not those of a plan that
// is being prepared: pods that do not run yet need no protection, and each pod that starts makes the API server count
// the budget again. Without a plan in force no budget is written.
absl::Status KeepBudget(Pass& pass, const TrainingJob& job);
// Call it before the group's pods are created. While a plan is prepared, the group asks for its members or for those of
// the plan in force that still exist, whichever are more: a scheduler that preempts pods must not shrink the plan in
// force, and one that places pods must find all members of the new one a place.
absl::Status KeepPodGroup(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle

// The objects of a job that are not pods: those that every job needs, and those that follow its plan.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "operator/api/training_job.h"
#include "operator/builders/pod_group.h"

namespace medley::ops::lifecycle {

class Pass;

struct ObjectsState {
  bool base_objects_made = false;
  std::string token;  // with which the job's processes authenticate each other; empty: not read yet
  // The values for which the objects that follow the plan were last written.
  struct Budget {
    bool wanted = true;
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
  std::optional<PodGroupKind> joined;  // the kind of group that new pods join; absent: none
};

// Creates the token Secret, the spec ConfigMap, the Service and the NetworkPolicy if they do not exist.
absl::Status EnsureBaseObjects(Pass& pass, const TrainingJob& job);
// Returns the job's token; creates its Secret if it does not exist.
absl::StatusOr<std::string> EnsureToken(Pass& pass, const TrainingJob& job);
// This and the next function need a plan. Call this one when the plan is in force: pods that do not run yet need no
// protection, and each pod that starts makes the API server count the budget again.
absl::Status EnsureBudget(Pass& pass, const TrainingJob& job);
// Call it before the group's pods are created.
absl::Status EnsurePodGroup(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle

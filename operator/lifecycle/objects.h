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
  std::string token;  // that the job's processes show each other; empty: not read yet
  // What the objects that follow the plan were last written for.
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

// Token Secret, spec ConfigMap, Service, NetworkPolicy.
absl::Status EnsureBaseObjects(Pass& pass, const TrainingJob& job);
absl::StatusOr<std::string> EnsureToken(Pass& pass, const TrainingJob& job);
// Both need a plan. The budget is written when the plan is in force: pods that do not run yet need no protection, and
// each of them that starts would make the API server count the budget again.
absl::Status EnsureBudget(Pass& pass, const TrainingJob& job);
// Before the group's pods.
absl::Status EnsurePodGroup(Pass& pass, const TrainingJob& job);

}  // namespace medley::ops::lifecycle

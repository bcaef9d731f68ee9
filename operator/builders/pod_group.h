// Gang scheduling: builds the PodGroup with which a scheduler places either all members of a plan or none. Pure.
//
// The group contains the trainers and the parameter servers, not the coordinator: the operator creates members only
// when it knows the coordinator's address, so a group of all of them would never be complete. Sources: Volcano's
// scheduling.volcano.sh/v1beta1, scheduler-plugins' scheduling.x-k8s.io/v1alpha1 (coscheduling).
#pragma once

#include <optional>

#include "operator/api/training_job.h"

namespace medley::ops {

enum class PodGroupKind { kSchedulerPlugins, kVolcano };

kube::Resource PodGroups(PodGroupKind kind);

// The kind of PodGroup that spec.runPolicy.schedulingPolicy requests; nullopt: none.
std::optional<PodGroupKind> WantedPodGroup(const RunPolicy& policy);

// A PodGroup for `members` pods.
kube::Object PodGroup(const TrainingJob& job, PodGroupKind kind, int members);

// Adds `pod`, a member of the job, to the job's PodGroup.
void JoinPodGroup(const TrainingJob& job, PodGroupKind kind, kube::Object& pod);

}  // namespace medley::ops

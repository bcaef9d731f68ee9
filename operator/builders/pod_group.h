// Gang scheduling: the PodGroup by which a scheduler places all members of a plan, or none. Pure.
//
// The group holds trainers and servers. The coordinator is not in it: members are made for its
// address, so a group that waited for it and them together would wait for ever. Sources: Volcano's
// scheduling.volcano.sh/v1beta1, scheduler-plugins' scheduling.x-k8s.io/v1alpha1 (coscheduling).
#pragma once

#include <optional>

#include "operator/api/training_job.h"

namespace medley::ops {

enum class PodGroupKind { kSchedulerPlugins, kVolcano };

kube::Resource PodGroups(PodGroupKind kind);

// What spec.runPolicy.schedulingPolicy asks for; nothing: no group.
std::optional<PodGroupKind> WantedPodGroup(const RunPolicy& policy);

// Of `members` pods.
kube::Object PodGroup(const TrainingJob& job, PodGroupKind kind, int members);

// Makes a member pod of the job one of its group.
void JoinPodGroup(const TrainingJob& job, PodGroupKind kind, kube::Object& pod);

}  // namespace medley::ops

// Names of group medley.dev: kinds, labels, annotations, and the names that every part agrees on.
// Pure constants.
#pragma once

#include "kube/object.h"

namespace medley::ops {

inline constexpr char kGroup[] = "medley.dev";
inline constexpr char kVersion[] = "v1alpha1";

inline kube::Resource TrainingJobs() { return {kGroup, kVersion, "trainingjobs", "TrainingJob", true}; }
inline kube::Resource ResourcePools() { return {kGroup, kVersion, "resourcepools", "ResourcePool", false}; }

// On everything that is made for a job.
inline constexpr char kJobNameLabel[] = "medley.dev/job-name";
inline constexpr char kRoleLabel[] = "medley.dev/role";  // coordinator, server, trainer, profiler
inline constexpr char kPoolLabel[] = "medley.dev/pool";
inline constexpr char kStageLabel[] = "medley.dev/stage";
inline constexpr char kGenerationLabel[] = "medley.dev/generation";  // in which the pod was made
inline constexpr char kProfileLabel[] = "medley.dev/profile";        // hash, on ConfigMaps of profiles
// On pods and plans: the term of the leader that made them (common/model/leader_term.h).
inline constexpr char kLeaderTermAnnotation[] = "medley.dev/leader-term";
inline constexpr char kFinalizer[] = "medley.dev/pods";
inline constexpr char kThisOperator[] = "medley.dev/operator";  // value of spec.runPolicy.managedBy

inline constexpr char kWorkerContainer[] = "worker";
inline constexpr char kProfileLinePrefix[] = "MEDLEY-PROFILE ";

}  // namespace medley::ops

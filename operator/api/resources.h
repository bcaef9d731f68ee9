// The names of API group medley.dev: kinds, labels, annotations, and names that several programs share. Pure constants.
#pragma once

#include "kube/object.h"

namespace medley::ops {

inline constexpr char kGroup[] = "medley.dev";
inline constexpr char kVersion[] = "v1alpha1";

inline kube::Resource TrainingJobs() { return {kGroup, kVersion, "trainingjobs", "TrainingJob", true}; }
inline kube::Resource ResourcePools() { return {kGroup, kVersion, "resourcepools", "ResourcePool", false}; }

// Labels of every object that the operator creates for a job.
inline constexpr char kJobNameLabel[] = "medley.dev/job-name";
inline constexpr char kRoleLabel[] = "medley.dev/role";  // coordinator, server, trainer, profiler
inline constexpr char kPoolLabel[] = "medley.dev/pool";
inline constexpr char kStageLabel[] = "medley.dev/stage";
inline constexpr char kGenerationLabel[] = "medley.dev/generation";  // the generation for which the pod was created
inline constexpr char kProfileLabel[] = "medley.dev/profile";        // on ConfigMaps with a profile: its hash
// On pods and plans: the term of the leader that created them (common/model/leader_term.h).
inline constexpr char kLeaderTermAnnotation[] = "medley.dev/leader-term";
// For a member that follows when another coordinator takes over: the term of the coordinator for which it was created.
inline constexpr char kCoordinatorTermAnnotation[] = "medley.dev/coordinator-term";
// Digest of the templates and the image from which a pod was made (builders/pods.h, TemplateDigest).
inline constexpr char kTemplateAnnotation[] = "medley.dev/template";
// On the pods of a job: the hash of the token that they were created with (operator/lifecycle/lost_token.h).
inline constexpr char kTokenAnnotation[] = "medley.dev/token";
// On profiler pods: the hash of those fields of their pool on which a measurement depends.
inline constexpr char kPoolVersionAnnotation[] = "medley.dev/pool-version";
// In caches only, on pods that wait for a node: a hash of what they need of one (operator/capacity/unit_needs.h).
inline constexpr char kNeedsAnnotation[] = "medley.dev/needs";
// In caches only, on pods that name a job as their owner and are not the operator's (operator/capacity/signed_pods.h):
// it has not signed them, or they copy a pod that it has signed.
inline constexpr char kUnsignedAnnotation[] = "medley.dev/unsigned";
inline constexpr char kNoSignature[] = "true";
inline constexpr char kCopiedSignature[] = "copy";
inline constexpr char kFinalizer[] = "medley.dev/pods";
inline constexpr char kThisOperator[] = "medley.dev/operator";  // value of spec.runPolicy.managedBy

inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
// Label selector of the objects that the operator creates.
inline constexpr char kOwnObjectsSelector[] = "app.kubernetes.io/managed-by=medley-operator";

inline constexpr char kWorkerContainer[] = "worker";
inline constexpr char kProfileLinePrefix[] = "MEDLEY-PROFILE ";

}  // namespace medley::ops

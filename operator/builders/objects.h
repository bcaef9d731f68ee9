// Builds the objects of a job other than pods. Pure.
#pragma once

#include <string>

#include "operator/api/training_job.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {

// A headless Service, so that the name `JOB-coordinator` resolves to the coordinator's address.
kube::Object CoordinatorService(const TrainingJob& job, const WorkerSettings& settings);
// Holds "spec.json": the job's spec with defaults and without the pod template. Workers read it. The operator writes it
// once, so that every process of the job reads the same spec; it is immutable.
kube::Object SpecConfigMap(const TrainingJob& job);
// Restricts ingress: the job's pods accept connections from each other, from the operator and, on the metrics port
// only, from scrapers. Egress is not restricted.
kube::Object JobNetworkPolicy(const TrainingJob& job, const WorkerSettings& settings);
// Lets at most runPolicy.disruptionBudget.maxUnavailable of the job's `pods` pods be evicted at the same time. Written
// as minAvailable, because Kubernetes computes maxUnavailable from spec.replicas of /scale, which is maxUnits and not
// the plan's number of pods.
kube::Object DisruptionBudget(const TrainingJob& job, int pods);
// The stored profile of one pool: JSON of medley.profile.v1.Profile. It has no owner reference, so that later jobs can
// reuse it.
kube::Object ProfileConfigMap(const std::string& ns, const std::string& hash, const std::string& pool,
                              const std::string& profile_json);

}  // namespace medley::ops

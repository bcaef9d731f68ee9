// The objects of a job that are no pods. Pure.
#pragma once

#include <string>

#include "operator/api/training_job.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {

// Headless, so that `JOB-coordinator` resolves to the coordinator's address.
kube::Object CoordinatorService(const TrainingJob& job, const WorkerSettings& settings);
// "spec.json": the job's spec with defaults, without its pod template. Workers read it; written
// once, so that every process of the job sees the same.
kube::Object SpecConfigMap(const TrainingJob& job);
// "token": what the job's processes show each other.
kube::Object TokenSecret(const TrainingJob& job, const std::string& token);
// Members of the job reach each other; of everything else only the operator reaches them, and
// scrapers the port of the metrics. What pods may call is not bounded.
kube::Object JobNetworkPolicy(const TrainingJob& job, const WorkerSettings& settings);
// Evictions take at most maxUnavailable of the job's `pods` pods at the same time. Says
// minAvailable and not maxUnavailable: the latter counts against .spec of /scale, which is
// maxUnits, not the plan.
kube::Object DisruptionBudget(const TrainingJob& job, int pods);
// The stored profile of one pool: JSON of medley.profile.v1.Profile. Owned by nobody, reused by
// later jobs.
kube::Object ProfileConfigMap(const std::string& ns, const std::string& hash, const std::string& pool,
                              const std::string& profile_json);

// The token in a Secret as the API server gives it back (base64 in `data`); empty when there is
// none.
std::string TokenOf(const kube::Object& secret);

}  // namespace medley::ops

// Builds the pods of a job. Pure: the same input gives the same object, byte for byte.
//
// All pods meet the Pod Security Standard `restricted` (non-root, no capabilities, seccomp RuntimeDefault) and have a
// read-only root file system and no API token. The coordinator's container restarts in its pod, so it keeps its
// address. Members and profilers have restartPolicy Never: the operator replaces their pods.
#pragma once

#include <string>
#include <vector>

#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/builders/slots.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {

// `name` empty: CoordinatorName(job). `term`: docs/adr/0015-the-coordinator-moves.md; 0: none.
kube::Object CoordinatorPod(const TrainingJob& job, const WorkerSettings& settings, const std::string& name = "",
                            int64_t term = 0);

// `coordinator`: "ip:port". `generation`: the generation for which the pod is created. The pod of a slot with a zone
// is pinned to that zone (zone_pin.h).
kube::Object MemberPod(const TrainingJob& job, const MemberSlot& slot, const ResourcePool& pool,
                       const WorkerSettings& settings, const std::string& coordinator, int64_t generation);

kube::Object ProfilerPod(const TrainingJob& job, const ResourcePool& pool, const WorkerSettings& settings);

// From everything that users and the operator's configuration say about such a pod: the templates, the image and how it
// is pulled, the pool's unit and nodes. Pods have it as an annotation.
std::string TemplateDigest(const TrainingJob& job, Role role, const ResourcePool* pool, const WorkerSettings& settings);

// The scheduler takes other nodes than these, if it can.
void PreferOtherNodes(const std::vector<std::string>& nodes, kube::Object& pod);

// The spec of a pod that holds a unit of the pool, as far as the pool alone decides it: what it requests, and on which
// nodes. The templates of a job may request more.
kube::Json UnitPodSpec(const ResourcePool& pool);

// Whether the pool's unit has something for the worker besides what containers of the templates request
// (worker_share.h).
absl::Status CheckUnit(const TrainingJob& job, const ResourcePool& pool);

// The folder of the job's checkpoints, the same in every pod, or its address in an object store; empty when the job
// keeps none. Its name contains the job's uid, so a job that is created again does not take the files of the old one.
std::string CheckpointDir(const TrainingJob& job);

// The address of the coordinator for which a member pod was created; empty when the pod names none.
std::string CoordinatorOf(const kube::Object& pod);

}  // namespace medley::ops

// The pods of a job. Pure: the same input gives the same object, byte for byte.
//
// All are restricted (non-root, no capabilities, seccomp RuntimeDefault, read-only root, no API
// token). The coordinator restarts in place, keeping its address; members and profilers never do:
// the operator replaces them.
#pragma once

#include <string>

#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/builders/slots.h"
#include "operator/builders/worker_env.h"

namespace medley::ops {

kube::Object CoordinatorPod(const TrainingJob& job, const WorkerSettings& settings);

// `coordinator`: "ip:port". `generation` is the one for which the pod is made. A slot with a zone gives a pod that is
// pinned to the zone (zone_pin.h).
kube::Object MemberPod(const TrainingJob& job, const MemberSlot& slot, const ResourcePool& pool,
                       const WorkerSettings& settings, const std::string& coordinator, int64_t generation);

kube::Object ProfilerPod(const TrainingJob& job, const ResourcePool& pool, const WorkerSettings& settings);

// Where the job's checkpoints lie in every pod; empty without a volume. Named after the job's UID,
// so that jobs may share a volume.
std::string CheckpointDir(const TrainingJob& job);

// The coordinator that a member pod was made for; empty when it names none.
std::string CoordinatorOf(const kube::Object& pod);

}  // namespace medley::ops

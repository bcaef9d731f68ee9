// Reads the inputs of a pass over a job from caches. Only in the first pass of a new leader does it read the job's own
// objects from the API server, because the caches may lag behind the last writes of the previous leader.
#pragma once

#include <string>

#include "operator/controllers/job_deps.h"
#include "operator/lifecycle/lifecycle.h"

namespace medley::ops {

// The job as read from the cache, checked against the spec with which it was admitted.
lifecycle::JobInput ReadJobInput(const JobDeps& deps, kube::ObjectPtr object);

// `first`: this is the first pass of this process over this job, so its memory is empty.
lifecycle::World ReadWorld(const JobDeps& deps, const kube::ObjectPtr& object, const lifecycle::Memory& memory,
                           bool first);

// Returns `cached`; with `first` and leader election, the object in the API server if it can be read. Null: it does not
// exist.
kube::ObjectPtr ReadCurrent(const JobDeps& deps, bool first, const kube::Resource& resource, const kube::Key& key,
                            kube::ObjectPtr cached);

// All valid pools, those of the query with prices and units as this job sees them. The only place where a pool is
// priced for a job.
lifecycle::PoolsView ReadPoolsView(const JobDeps& deps, const TrainingJob& job, const lifecycle::ReadPools& query);

}  // namespace medley::ops

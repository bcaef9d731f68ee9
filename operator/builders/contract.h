// What a pod of a job needs whatever its templates say: of Medley, and of the pool whose unit it holds. Pure.
#pragma once

#include <string>

#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"

namespace medley::ops {

inline constexpr char kCredentialsVolume[] = "credentials";

// `spec_map`: the ConfigMap of the job's spec. `secret`: the job's Secret; empty: the pod does not get it. Sets the
// argument of the worker's container (--role) and the volumes of both, which only that container mounts.
void KeepContract(const std::string& role, const std::string& spec_map, const std::string& secret,
                  kube::Json& pod_spec);

// Gives the worker's container what it needs to reach object stores: the files of the Secret with the keys, which is of
// the pod's own namespace and may be missing (the worker then says which key it lacks), and variables with the rest.
void KeepStorage(const StorageAccess& storage, kube::Json& pod_spec);

// Keeps a pod on the nodes of its pool and at the size of its unit: the pool's nodeSelector, tolerations and unit
// resources, less what containers beside the worker request, win over the templates', and the pod names no node.
void KeepPool(const ResourcePool& pool, kube::Json& pod_spec);

// Lets the worker's container, whose image is the user's, run Medley's agent: an init container of Medley's `image`
// copies it into a volume of the pod. Call it after KeepPool: the copy may have the memory and CPUs of the unit, so
// that the pod keeps its class of service. `pull_policy`: of that image; empty: Kubernetes decides.
void KeepAgent(const std::string& image, const std::string& pull_policy, kube::Json& pod_spec);

// The labels or annotations of a template, without those of Medley ("medley.dev/..."): the operator finds and sorts its
// pods by them.
kube::Json WithoutOwn(const kube::Json& metadata, const char* field);

}  // namespace medley::ops

// Requests and limits of the coordinator. Pure.
//
// It handles messages, no samples, so the same amounts serve small and large jobs. It has limits so that a namespace
// whose ResourceQuota counts limits.cpu or limits.memory admits it. Members take the unit of their pool.
#pragma once

#include "kube/object.h"

namespace medley::ops {

inline constexpr char kCoordinatorCpu[] = "100m";
inline constexpr char kCoordinatorMemory[] = "128Mi";
inline constexpr char kCoordinatorCpuLimit[] = "1";
inline constexpr char kCoordinatorMemoryLimit[] = "1Gi";

// Adds what the template has not set. A limit is at least the template's request, and a request is at most the
// template's limit.
void FillCoordinatorResources(kube::Json& container);

}  // namespace medley::ops

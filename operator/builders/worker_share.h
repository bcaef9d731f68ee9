// What the worker's container gets of the unit that its pod holds. Pure.
//
// A unit is what a pod of a job requests in all, besides what the template of the pool itself adds, and its price is
// for that. Containers of a job's template beside the worker therefore take from the worker's part: those that run
// while it does, which are containers and init containers that restart (sidecars). Otherwise a job could have a
// machine for the price of a unit.
#pragma once

#include <absl/status/status.h>

#include <map>
#include <string>

#include "kube/object.h"

namespace medley::ops {

using UnitAmounts = std::map<std::string, std::string>;  // resource name -> quantity as written

// Amounts of `unit` less what the containers beside the worker in `pod_spec` request above those in `pool_spec`, a pod
// of the pool without a job's templates. A container that has only a limit requests that. A resource of which nothing
// would be left keeps its amount: CheckWorkerShare refuses that.
UnitAmounts WorkerShare(const UnitAmounts& unit, const kube::Json& pod_spec, const kube::Json& pool_spec);

// FailedPrecondition with both amounts if those containers leave the worker nothing of a resource of the unit, or if an
// init container requests more than the unit.
absl::Status CheckWorkerShare(const UnitAmounts& unit, const kube::Json& pod_spec, const kube::Json& pool_spec);

}  // namespace medley::ops

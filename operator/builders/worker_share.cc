#include "operator/builders/worker_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using kube::Json;

// What a container requests; 0: nothing, or no quantity, which the API server refuses.
double Requested(const Json& container, const std::string& resource) {
  const Json& resources = kube::GetObject(container, "resources");
  for (const char* list : {"requests", "limits"}) {
    const Json& amounts = kube::GetObject(resources, list);
    if (!amounts.contains(resource)) continue;
    return base::ParseQuantity(kube::QuantityText(amounts[resource])).value_or(0);
  }
  return 0;
}

bool IsSidecar(const Json& init_container) { return kube::GetString(init_container, "restartPolicy") == "Always"; }

struct Beside {
  double always = 0;    // while the worker runs
  double at_first = 0;  // of the largest init container, with the sidecars before it
};

Beside BesideWorker(const Json& pod_spec, const std::string& resource) {
  Beside beside;
  double sidecars = 0;
  for (const Json& container : kube::GetArray(pod_spec, "initContainers")) {
    const double wants = std::max(0.0, Requested(container, resource));
    beside.at_first = std::max(beside.at_first, sidecars + wants);
    if (IsSidecar(container)) sidecars += wants;
  }
  for (const Json& container : kube::GetArray(pod_spec, "containers")) {
    if (kube::GetString(container, "name") == kWorkerContainer) continue;
    beside.always += std::max(0.0, Requested(container, resource));
  }
  beside.always += sidecars;
  return beside;
}

// "1500m" of CPU, whole numbers of everything else.
std::string Quantity(const std::string& resource, double amount) {
  if (resource == "cpu") return fmt::format("{}m", std::llround(amount * 1000));
  return std::to_string(std::llround(amount));
}

double Smallest(const std::string& resource) { return resource == "cpu" ? 0.001 : 1; }

}  // namespace

UnitAmounts WorkerShare(const UnitAmounts& unit, const Json& pod_spec, const Json& pool_spec) {
  UnitAmounts share = unit;
  for (auto& [resource, amount] : share) {
    const double all = base::ParseQuantity(amount).value_or(0);
    const double added = BesideWorker(pod_spec, resource).always - BesideWorker(pool_spec, resource).always;
    if (added > 0 && all - added >= Smallest(resource)) amount = Quantity(resource, all - added);
  }
  return share;
}

absl::Status CheckWorkerShare(const UnitAmounts& unit, const Json& pod_spec, const Json& pool_spec) {
  for (const auto& [resource, amount] : unit) {
    const double all = base::ParseQuantity(amount).value_or(0);
    const Beside pod = BesideWorker(pod_spec, resource), pool = BesideWorker(pool_spec, resource);
    const double added = pod.always - pool.always;
    if (added > 0 && all - added < Smallest(resource)) {
      return base::FailedPrecondition("containers beside the worker request {} {} of a unit that has {}",
                                      Quantity(resource, added), resource, amount);
    }
    if (pod.at_first > std::max(all + pool.always, pool.at_first)) {
      return base::FailedPrecondition("init containers request {} {} of a unit that has {}",
                                      Quantity(resource, pod.at_first), resource, amount);
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::ops

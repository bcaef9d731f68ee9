#include "localcluster/node/resource_limits.h"

#include <algorithm>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/gpu_pool.h"

namespace medley::localcluster {
namespace {

absl::StatusOr<ResourceAmounts> ContainerRequests(const kube::Json& container) {
  const kube::Json& resources = kube::GetObject(container, "resources");
  MEDLEY_ASSIGN_OR_RETURN(ResourceAmounts requests, ParseAmounts(kube::GetObject(resources, "requests")));
  MEDLEY_ASSIGN_OR_RETURN(const ResourceAmounts limits, ParseAmounts(kube::GetObject(resources, "limits")));
  requests.insert(limits.begin(), limits.end());
  return requests;
}

}  // namespace

absl::StatusOr<ResourceAmounts> ParseAmounts(const kube::Json& quantities) {
  ResourceAmounts amounts;
  for (const auto& [name, value] : quantities.items()) {
    const auto amount = base::ParseQuantity(kube::QuantityText(value));
    if (!amount.ok()) return base::Annotate(amount.status(), fmt::format("resource '{}'", name));
    amounts[name] = *amount;
  }
  return amounts;
}

absl::StatusOr<ResourceAmounts> PodRequests(const kube::Object& pod) {
  ResourceAmounts sum;
  for (const kube::Json& container : kube::GetArray(pod.At("/spec"), "containers")) {
    MEDLEY_ASSIGN_OR_RETURN(const ResourceAmounts requests, ContainerRequests(container));
    for (const auto& [name, amount] : requests) sum[name] += amount;
  }
  for (const kube::Json& container : kube::GetArray(pod.At("/spec"), "initContainers")) {
    MEDLEY_ASSIGN_OR_RETURN(const ResourceAmounts requests, ContainerRequests(container));
    for (const auto& [name, amount] : requests) sum[name] = std::max(sum[name], amount);
  }
  return sum;
}

absl::StatusOr<Limits> ContainerLimits(const kube::Json& container) {
  const kube::Json& list = kube::GetObject(kube::GetObject(container, "resources"), "limits");
  Limits limits;
  if (const std::string cpu = kube::QuantityText(kube::GetValue(list, "cpu")); !cpu.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const double cores, base::ParseQuantity(cpu));
    if (cores > 0) limits.cores = cores;
  }
  if (const std::string memory = kube::QuantityText(kube::GetValue(list, "memory")); !memory.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const int64_t bytes, base::ParseBytes(memory));
    if (bytes > 0) limits.memory_bytes = bytes;
  }
  if (const std::string gpus = kube::QuantityText(kube::GetValue(list, kGpuResourceName)); !gpus.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const double count, base::ParseQuantity(gpus));
    limits.gpus = static_cast<int>(std::clamp(count, 0.0, 1e6));
  }
  return limits;
}

}  // namespace medley::localcluster

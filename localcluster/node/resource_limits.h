// The resources that pods request and that containers may use. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::localcluster {

// By resource name: cores, bytes, or units of an extended resource.
using ResourceAmounts = std::map<std::string, double>;

// The requests of the pod: the sum over its containers, where a limit stands in for a missing request, or the largest
// request of an init container (these run one at a time), whichever is larger. Errors: InvalidArgument.
absl::StatusOr<ResourceAmounts> PodRequests(const kube::Object& pod);

struct Limits {
  std::optional<double> cores;
  std::optional<int64_t> memory_bytes;
  int gpus = 0;  // nvidia.com/gpu
  bool any() const { return cores.has_value() || memory_bytes.has_value(); }
};

// The resources.limits of one container. Errors: InvalidArgument.
absl::StatusOr<Limits> ContainerLimits(const kube::Json& container);

// Parses quantities ("500m", "16Gi", ...) by resource name. Errors: InvalidArgument names the resource.
absl::StatusOr<ResourceAmounts> ParseAmounts(const kube::Json& quantities);

}  // namespace medley::localcluster

// What containers and pods ask for and may use. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <optional>
#include <string>

#include "kube/object.h"

namespace medley::kube {

// By resource name: cores, bytes, or units of an extended resource.
using ResourceAmounts = std::map<std::string, double>;

// resources.requests of the containers added up, with a limit standing in for a request that is not
// given; of the init containers, which run alone, the largest. Errors: InvalidArgument.
absl::StatusOr<ResourceAmounts> PodRequests(const Object& pod);

struct Limits {
  std::optional<double> cores;
  std::optional<int64_t> memory_bytes;
  bool any() const { return cores.has_value() || memory_bytes.has_value(); }
};

// resources.limits of one container. Errors: InvalidArgument.
absl::StatusOr<Limits> ContainerLimits(const Json& container);

// "500m", "16Gi", ... by name, to amounts. Errors: InvalidArgument names the resource.
absl::StatusOr<ResourceAmounts> ParseAmounts(const Json& quantities);

}  // namespace medley::kube

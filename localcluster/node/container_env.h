// The environment of a container from env and envFrom. Pure except for the data source.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.h"
#include "localcluster/node/resource_limits.h"

namespace medley::localcluster {

// Reads a ConfigMap or Secret of the pod's namespace as key -> bytes; Secrets are decoded.
// Errors: NotFound, and those of the API server.
enum class DataKind { kConfigMap, kSecret };
using DataSource =
    std::function<absl::StatusOr<std::map<std::string, std::string>>(DataKind kind, const std::string& name)>;

// The data of a ConfigMap or Secret object. Errors: InvalidArgument for invalid base64.
absl::StatusOr<std::map<std::string, std::string>> DecodeData(DataKind kind, const kube::Object& object);

// Values that the pod object does not contain yet when a container starts.
struct PodFacts {
  std::string pod_ip;
  std::string host_ip;
};

// "metadata.name", "metadata.labels['x']", "spec.nodeName", "status.podIP", ...
// Errors: InvalidArgument for any other path.
absl::StatusOr<std::string> FieldValue(const kube::Object& pod, std::string_view path, const PodFacts& facts);

// All variables of `container`; each may refer to earlier ones. Errors: NotFound names the missing ConfigMap, Secret or
// key; InvalidArgument names an unsupported kind of reference.
absl::StatusOr<std::map<std::string, std::string>> ContainerEnv(const kube::Object& pod, const kube::Json& container,
                                                                const PodFacts& facts, const DataSource& source);

}  // namespace medley::localcluster

// The environment of a container: env, envFrom, and where their values come from. Pure but for the source.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "kube/object.h"
#include "localcluster/node/resource_limits.h"

namespace medley::kube {

// Reads a ConfigMap or a Secret of the pod's namespace: file or key -> bytes, Secrets decoded.
// Errors: NotFound, and the API server's.
enum class DataKind { kConfigMap, kSecret };
using DataSource =
    std::function<absl::StatusOr<std::map<std::string, std::string>>(DataKind kind, const std::string& name)>;

// The data of a ConfigMap or Secret object. Errors: InvalidArgument for bad base64.
absl::StatusOr<std::map<std::string, std::string>> DecodeData(DataKind kind, const Object& object);

// What the API server does not know yet when a container starts.
struct PodFacts {
  std::string pod_ip;
  std::string host_ip;
};

// "metadata.name", "metadata.labels['x']", "spec.nodeName", "status.podIP", ...
// Errors: InvalidArgument for a path that Kubernetes does not have.
absl::StatusOr<std::string> FieldValue(const Object& pod, std::string_view path, const PodFacts& facts);

// All variables of `container`, each expanded with those before it. Errors: NotFound names the missing
// ConfigMap, Secret or key; InvalidArgument an unknown kind of reference.
absl::StatusOr<std::map<std::string, std::string>> ContainerEnv(const Object& pod, const Json& container,
                                                                const PodFacts& facts, const DataSource& source);

}  // namespace medley::kube

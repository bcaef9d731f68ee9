#include "localcluster/node/container_env.h"

#include <absl/strings/escaping.h>

#include <cmath>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/json_access.h"
#include "localcluster/node/env_expansion.h"

namespace medley::localcluster {
namespace {

using Variables = std::map<std::string, std::string>;

// `reference`: {name, key, optional}. Returns nullopt if it is optional and missing.
absl::StatusOr<std::optional<std::string>> KeyValue(DataKind kind, const kube::Json& reference,
                                                    const DataSource& source) {
  const char* what = kind == DataKind::kSecret ? "secret" : "configmap";
  const std::string name = kube::GetString(reference, "name");
  const std::string key = kube::GetString(reference, "key");
  const bool optional = kube::GetBool(reference, "optional", false);
  const absl::StatusOr<Variables> data = source(kind, name);
  if (!data.ok()) {
    if (optional && data.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
    return base::Annotate(data.status(), fmt::format("{} '{}'", what, name));
  }
  const auto it = data->find(key);
  if (it != data->end()) return it->second;
  if (optional) return std::nullopt;
  return base::NotFound("couldn't find key '{}' in {} '{}'", key, what, name);
}

absl::StatusOr<std::string> ResourceValue(const kube::Object& pod, const kube::Json& container,
                                          const kube::Json& reference) {
  const std::string resource = kube::GetString(reference, "resource");
  const kube::Json* from = &container;
  const std::string name = kube::GetString(reference, "containerName");
  if (!name.empty()) {
    for (const kube::Json& other : kube::GetArray(pod.At("/spec"), "containers")) {
      if (kube::GetString(other, "name") == name) from = &other;
    }
  }
  const size_t dot = resource.find('.');
  if (dot == std::string::npos) return base::InvalidArgument("resourceFieldRef '{}' is not supported", resource);
  const kube::Json& list = kube::GetObject(kube::GetObject(*from, "resources"), resource.substr(0, dot).c_str());
  const std::string text = kube::QuantityText(kube::GetValue(list, resource.substr(dot + 1)));
  const std::string divisor_text = kube::QuantityText(kube::GetValue(reference, "divisor"));
  if (text.empty()) return base::InvalidArgument("resourceFieldRef '{}': the container does not set it", resource);
  MEDLEY_ASSIGN_OR_RETURN(const double value, base::ParseQuantity(text));
  double divisor = 1;
  if (!divisor_text.empty() && divisor_text != "0") {
    MEDLEY_ASSIGN_OR_RETURN(divisor, base::ParseQuantity(divisor_text));
  }
  return fmt::format("{:.0f}", std::ceil(value / divisor - 1e-9));
}

absl::StatusOr<std::optional<std::string>> ReferredValue(const kube::Object& pod, const kube::Json& container,
                                                         const kube::Json& from, const PodFacts& facts,
                                                         const DataSource& source) {
  if (from.contains("fieldRef")) {
    MEDLEY_ASSIGN_OR_RETURN(std::string value, FieldValue(pod, kube::GetString(from["fieldRef"], "fieldPath"), facts));
    return std::optional<std::string>(std::move(value));
  }
  if (from.contains("configMapKeyRef")) return KeyValue(DataKind::kConfigMap, from["configMapKeyRef"], source);
  if (from.contains("secretKeyRef")) return KeyValue(DataKind::kSecret, from["secretKeyRef"], source);
  if (from.contains("resourceFieldRef")) {
    MEDLEY_ASSIGN_OR_RETURN(std::string value, ResourceValue(pod, container, from["resourceFieldRef"]));
    return std::optional<std::string>(std::move(value));
  }
  return base::InvalidArgument("valueFrom {} is not supported", from.dump());
}

absl::Status AddFrom(const kube::Json& entry, const DataSource& source, Variables& variables) {
  const bool secret = entry.contains("secretRef");
  const kube::Json& reference = kube::GetObject(entry, secret ? "secretRef" : "configMapRef");
  const std::string name = kube::GetString(reference, "name");
  const auto data = source(secret ? DataKind::kSecret : DataKind::kConfigMap, name);
  if (!data.ok()) {
    const bool absent = data.status().code() == absl::StatusCode::kNotFound;
    if (absent && kube::GetBool(reference, "optional", false)) return absl::OkStatus();
    return base::Annotate(data.status(), fmt::format("{} '{}'", secret ? "secret" : "configmap", name));
  }
  const std::string prefix = kube::GetString(entry, "prefix");
  for (const auto& [key, value] : *data) variables[prefix + key] = value;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Variables> DecodeData(DataKind kind, const kube::Object& object) {
  Variables out;
  const auto decode = [&](const char* section) -> absl::Status {
    for (const auto& [key, value] : kube::GetObject(object.json(), section).items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : "";
      if (!absl::Base64Unescape(text, &out[key])) {
        return base::InvalidArgument("{} key '{}' is not base64", object.key().ToString(), key);
      }
    }
    return absl::OkStatus();
  };
  if (kind == DataKind::kSecret) {
    MEDLEY_RETURN_IF_ERROR(decode("data"));
  } else {
    MEDLEY_RETURN_IF_ERROR(decode("binaryData"));
    for (const auto& [key, value] : kube::GetObject(object.json(), "data").items()) {
      out[key] = value.is_string() ? value.get<std::string>() : "";
    }
  }
  return out;
}

absl::StatusOr<std::string> FieldValue(const kube::Object& pod, std::string_view path, const PodFacts& facts) {
  if (path == "metadata.name") return pod.key().name;
  if (path == "metadata.namespace") return pod.key().ns;
  if (path == "metadata.uid") return pod.uid();
  if (path == "spec.nodeName") return pod.String("/spec/nodeName");
  if (path == "spec.serviceAccountName") return pod.String("/spec/serviceAccountName");
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  for (const auto& [prefix, labels] : {std::pair<std::string_view, bool>{"metadata.labels['", true},
                                       std::pair<std::string_view, bool>{"metadata.annotations['", false}}) {
    if (path.size() > prefix.size() + 2 && path.substr(0, prefix.size()) == prefix &&
        path.substr(path.size() - 2) == "']") {
      const std::string_view key = path.substr(prefix.size(), path.size() - prefix.size() - 2);
      return labels ? pod.label(key) : pod.annotation(key);
    }
  }
  return base::InvalidArgument("fieldPath '{}' is not supported", path);
}

absl::StatusOr<Variables> ContainerEnv(const kube::Object& pod, const kube::Json& container, const PodFacts& facts,
                                       const DataSource& source) {
  Variables variables;
  for (const kube::Json& entry : kube::GetArray(container, "envFrom")) {
    MEDLEY_RETURN_IF_ERROR(AddFrom(entry, source, variables));
  }
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto it = variables.find(std::string(name));
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
  for (const kube::Json& entry : kube::GetArray(container, "env")) {
    const std::string name = kube::GetString(entry, "name");
    if (!entry.contains("valueFrom")) {
      variables[name] = ExpandVariables(kube::GetString(entry, "value"), lookup);
      continue;
    }
    const auto value = ReferredValue(pod, container, entry["valueFrom"], facts, source);
    if (!value.ok()) return base::Annotate(value.status(), fmt::format("env '{}'", name));
    if (*value) variables[name] = **value;
  }
  return variables;
}

}  // namespace medley::localcluster

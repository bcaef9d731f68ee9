#include "common/kube/client/config.h"

#include <absl/strings/escaping.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMaxFile = 16 << 20;

std::string Trimmed(std::string text) {
  const size_t end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

std::string Text(const YAML::Node& node, const char* field) {
  if (!node.IsMap()) return "";
  const YAML::Node value = node[field];
  return value && value.IsScalar() ? value.Scalar() : "";
}

// The `field` map of the entry of `list` named `name`.
absl::StatusOr<YAML::Node> Named(const YAML::Node& root, const char* list, const char* field,
                                 const std::string& name) {
  const YAML::Node entries = root[list];
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (Text(entry, "name") == name && entry[field]) return entry[field];
    }
  }
  return base::NotFound("no {} '{}' in the kubeconfig", field, name);
}

// "x-data" in base64, or the content of the file named by "x".
absl::StatusOr<std::string> Pem(const YAML::Node& node, const std::string& field,
                                const fs::path& folder) {
  if (const std::string data = Text(node, (field + "-data").c_str()); !data.empty()) {
    std::string decoded;
    if (!absl::Base64Unescape(data, &decoded)) {
      return base::InvalidArgument("{}-data is not base64", field);
    }
    return decoded;
  }
  const std::string file = Text(node, field.c_str());
  if (file.empty()) return std::string();
  auto bytes = base::ReadFile(folder / file, kMaxFile);
  if (!bytes.ok()) return base::Annotate(bytes.status(), "read " + field);
  return bytes;
}

absl::Status ReadCluster(const YAML::Node& cluster, const fs::path& folder, ClientConfig& config) {
  config.server = Text(cluster, "server");
  if (!config.server.starts_with("http://") && !config.server.starts_with("https://")) {
    return base::InvalidArgument("server '{}' of the cluster is no http or https URL",
                                 config.server);
  }
  while (config.server.ends_with('/')) config.server.pop_back();
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, Pem(cluster, "certificate-authority", folder));
  config.insecure_skip_tls_verify = Text(cluster, "insecure-skip-tls-verify") == "true";
  config.tls_server_name = Text(cluster, "tls-server-name");
  return absl::OkStatus();
}

absl::Status ReadUser(const YAML::Node& user, const fs::path& folder, ClientConfig& config) {
  for (const char* plugin : {"exec", "auth-provider"}) {
    if (user[plugin]) {
      return base::Unimplemented("the user's credentials come from '{}', which is not supported", plugin);
    }
  }
  MEDLEY_ASSIGN_OR_RETURN(config.client_certificate_data, Pem(user, "client-certificate", folder));
  MEDLEY_ASSIGN_OR_RETURN(config.client_key_data, Pem(user, "client-key", folder));
  if (config.client_certificate_data.empty() != config.client_key_data.empty()) {
    return base::InvalidArgument("the user has a client certificate without a key, or a key without one");
  }
  config.token = Trimmed(Text(user, "token"));
  if (config.token.find_first_of("\r\n") != std::string::npos) {
    return base::InvalidArgument("the user's token has more than one line");
  }
  if (const std::string file = Text(user, "tokenFile"); !file.empty()) {
    config.token_file = (folder / file).string();
  }
  return absl::OkStatus();
}

absl::StatusOr<ClientConfig> FromYaml(const YAML::Node& root, std::string context_name,
                                      const fs::path& folder) {
  if (!root.IsMap()) return base::InvalidArgument("no YAML mapping");
  if (context_name.empty()) context_name = Text(root, "current-context");
  if (context_name.empty()) return base::NotFound("no current-context");
  MEDLEY_ASSIGN_OR_RETURN(const YAML::Node context, Named(root, "contexts", "context", context_name));
  MEDLEY_ASSIGN_OR_RETURN(const YAML::Node cluster,
                          Named(root, "clusters", "cluster", Text(context, "cluster")));
  ClientConfig config;
  MEDLEY_RETURN_IF_ERROR(ReadCluster(cluster, folder, config));
  if (const std::string ns = Text(context, "namespace"); !ns.empty()) config.ns = ns;
  const std::string user_name = Text(context, "user");
  if (user_name.empty()) return config;
  MEDLEY_ASSIGN_OR_RETURN(const YAML::Node user, Named(root, "users", "user", user_name));
  MEDLEY_RETURN_IF_ERROR(ReadUser(user, folder, config));
  return config;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

absl::StatusOr<fs::path> KubeconfigPath(const Environment& environment) {
  std::error_code ignored;
  const std::string list = environment("KUBECONFIG").value_or("");
  if (!list.empty()) {
    size_t begin = 0;
    while (begin <= list.size()) {
      const size_t end = std::min(list.find(':', begin), list.size());
      const fs::path path = list.substr(begin, end - begin);
      if (!path.empty() && fs::exists(path, ignored)) return path;
      begin = end + 1;
    }
    return base::NotFound("no file of KUBECONFIG '{}' exists", list);
  }
  const fs::path path = fs::path(environment("HOME").value_or("/")) / ".kube" / "config";
  if (fs::exists(path, ignored)) return path;
  return base::NotFound("no kubeconfig: KUBECONFIG is not set and '{}' does not exist", path.string());
}

absl::StatusOr<ClientConfig> LoadKubeconfig(const fs::path& path, const std::string& context) {
  const std::string what = "load kubeconfig '" + path.string() + "'";
  auto text = base::ReadFile(path, kMaxFile);
  if (!text.ok()) return base::Annotate(text.status(), what);
  try {
    auto config = FromYaml(YAML::Load(*text), context, path.parent_path());
    if (!config.ok()) return base::Annotate(config.status(), what);
    return config;
  } catch (const YAML::Exception& error) {
    return base::InvalidArgument("{}: {}", what, error.what());
  }
}

absl::StatusOr<ClientConfig> InClusterConfig(const Environment& environment, const fs::path& root) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return base::FailedPrecondition(
        "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set");
  }
  const fs::path folder = root / "var/run/secrets/kubernetes.io/serviceaccount";
  ClientConfig config;
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port;
  config.token_file = (folder / "token").string();
  MEDLEY_ASSIGN_OR_RETURN(config.token, base::ReadFile(config.token_file, kMaxFile));
  config.token = Trimmed(std::move(config.token));
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, base::ReadFile(folder / "ca.crt", kMaxFile));
  if (const auto ns = base::ReadFile(folder / "namespace", kMaxFile); ns.ok()) {
    config.ns = Trimmed(*ns);
  }
  return config;
}

}  // namespace medley::kube

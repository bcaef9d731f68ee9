#include "kube/client/config.h"

#include <absl/strings/escaping.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "kube/client/exec_credential.h"

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

// One file of a kubeconfig.
struct Source {
  YAML::Node root;
  fs::path folder;
};

struct Entry {
  YAML::Node node;
  fs::path folder;  // to which its file names are relative
};

// The `field` map of the first entry of `list` named `name`.
absl::StatusOr<Entry> Named(const std::vector<Source>& sources, const char* list, const char* field,
                            const std::string& name) {
  std::string there;
  for (const Source& source : sources) {
    const YAML::Node entries = source.root[list];
    if (!entries || !entries.IsSequence()) continue;
    for (const YAML::Node& entry : entries) {
      const std::string found = Text(entry, "name");
      if (found == name && entry[field]) return Entry{entry[field], source.folder};
      there += (there.empty() ? "" : ", ") + found;
    }
  }
  return base::NotFound("no {} '{}' in the kubeconfig; {}", field, name,
                        there.empty() ? "there is none" : "there are: " + there);
}

// "x-data" in base64, or the content of the file named by "x", whose name is kept in `name`.
absl::StatusOr<std::string> Pem(const YAML::Node& node, const std::string& field, const fs::path& folder,
                                std::string& name) {
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
  name = (folder / file).string();
  return bytes;
}

absl::Status ReadCluster(const YAML::Node& cluster, const fs::path& folder, ClientConfig& config) {
  config.server = Text(cluster, "server");
  if (!config.server.starts_with("http://") && !config.server.starts_with("https://")) {
    return base::InvalidArgument("server '{}' of the cluster is no http or https URL", config.server);
  }
  while (config.server.ends_with('/')) config.server.pop_back();
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, Pem(cluster, "certificate-authority", folder, config.ca_file));
  config.insecure_skip_tls_verify = Text(cluster, "insecure-skip-tls-verify") == "true";
  config.tls_server_name = Text(cluster, "tls-server-name");
  config.proxy_url = Text(cluster, "proxy-url");
  return absl::OkStatus();
}

// An identity that is not used is an identity that is wrong: what is not understood is refused.
absl::Status RefuseUnknown(const YAML::Node& user) {
  for (const char* field : {"auth-provider", "as", "as-uid", "as-groups", "username"}) {
    if (user[field]) {
      return base::Unimplemented("the user's credentials have '{}', which is not supported", field);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecPlugin> ReadExec(const YAML::Node& exec, const fs::path& folder, const ClientConfig& config) {
  ExecPlugin plugin;
  plugin.api_version = Text(exec, "apiVersion");
  plugin.command = Text(exec, "command");
  if (plugin.command.empty()) return base::InvalidArgument("the user's exec plugin has no command");
  if (plugin.command.find('/') != std::string::npos) plugin.command = (folder / plugin.command).string();
  for (const YAML::Node& argument : exec["args"]) plugin.args.push_back(argument.as<std::string>());
  for (const YAML::Node& variable : exec["env"]) {
    plugin.env.emplace_back(Text(variable, "name"), Text(variable, "value"));
  }
  plugin.install_hint = Text(exec, "installHint");
  plugin.interactive_mode = Text(exec, "interactiveMode");
  if (Text(exec, "provideClusterInfo") == "true") {
    plugin.cluster = {config.server, config.ca_data, config.tls_server_name, config.insecure_skip_tls_verify};
  }
  return plugin;
}

absl::Status UseExec(const ExecPlugin& plugin, ClientConfig& config) {
  MEDLEY_ASSIGN_OR_RETURN(ExecCredential credential, RunExecPlugin(plugin));
  config.token = std::move(credential.token);
  if (!credential.client_certificate_data.empty()) {
    config.client_certificate_data = std::move(credential.client_certificate_data);
    config.client_key_data = std::move(credential.client_key_data);
  }
  if (!config.token.empty()) {
    config.token_source = [plugin]() -> absl::StatusOr<std::string> {
      MEDLEY_ASSIGN_OR_RETURN(ExecCredential fresh, RunExecPlugin(plugin));
      return std::move(fresh.token);
    };
  }
  return absl::OkStatus();
}

absl::Status ReadUser(const YAML::Node& user, const fs::path& folder, ClientConfig& config) {
  MEDLEY_RETURN_IF_ERROR(RefuseUnknown(user));
  MEDLEY_ASSIGN_OR_RETURN(config.client_certificate_data,
                          Pem(user, "client-certificate", folder, config.client_certificate_file));
  MEDLEY_ASSIGN_OR_RETURN(config.client_key_data, Pem(user, "client-key", folder, config.client_key_file));
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
  // As kubectl: a token that is written down is taken before a plugin is run.
  if (!user["exec"] || !config.token.empty() || !config.token_file.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const ExecPlugin plugin, ReadExec(user["exec"], folder, config));
  return UseExec(plugin, config);
}

std::string CurrentContext(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    if (std::string name = Text(source.root, "current-context"); !name.empty()) return name;
  }
  return "";
}

absl::StatusOr<ClientConfig> FromSources(const std::vector<Source>& sources, std::string context_name) {
  if (context_name.empty()) context_name = CurrentContext(sources);
  if (context_name.empty()) return base::NotFound("no current-context");
  MEDLEY_ASSIGN_OR_RETURN(const Entry context, Named(sources, "contexts", "context", context_name));
  MEDLEY_ASSIGN_OR_RETURN(const Entry cluster, Named(sources, "clusters", "cluster", Text(context.node, "cluster")));
  ClientConfig config;
  MEDLEY_RETURN_IF_ERROR(ReadCluster(cluster.node, cluster.folder, config));
  if (const std::string ns = Text(context.node, "namespace"); !ns.empty()) config.ns = ns;
  const std::string user_name = Text(context.node, "user");
  if (user_name.empty()) return config;
  MEDLEY_ASSIGN_OR_RETURN(const Entry user, Named(sources, "users", "user", user_name));
  MEDLEY_RETURN_IF_ERROR(ReadUser(user.node, user.folder, config));
  return config;
}

absl::StatusOr<Source> ReadSource(const fs::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxFile));
  Source source{YAML::Load(text), path.parent_path()};
  if (!source.root.IsMap() && !source.root.IsNull()) return base::InvalidArgument("no YAML mapping");
  return source;
}

// yaml-cpp throws on syntax and on conversions.
template <typename Body>
auto GuardYaml(const std::string& what, Body body) -> decltype(body()) {
  try {
    auto result = body();
    if (!result.ok()) return base::Annotate(result.status(), what);
    return result;
  } catch (const YAML::Exception& error) {
    return base::InvalidArgument("{}: {}", what, error.what());
  }
}

// The files that kubectl would merge: existing ones only, but for the one that a flag names.
std::vector<fs::path> KubeconfigFiles(const KubeconfigFlags& flags, const Environment& environment) {
  if (!flags.kubeconfig.empty()) return {flags.kubeconfig};
  std::error_code ignored;
  std::vector<fs::path> files;
  const std::string list = environment("KUBECONFIG").value_or("");
  if (list.empty()) {
    const fs::path path = fs::path(environment("HOME").value_or("/")) / ".kube" / "config";
    if (fs::exists(path, ignored)) files.push_back(path);
    return files;
  }
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    const fs::path path = list.substr(begin, end - begin);
    if (!path.empty() && fs::exists(path, ignored)) files.push_back(path);
    begin = end + 1;
  }
  return files;
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

absl::StatusOr<fs::path> KubeconfigPath(const Environment& environment) {
  const std::vector<fs::path> files = KubeconfigFiles({}, environment);
  if (!files.empty()) return files.front();
  const std::string list = environment("KUBECONFIG").value_or("");
  if (!list.empty()) return base::NotFound("no file of KUBECONFIG '{}' exists", list);
  return base::NotFound("no kubeconfig: KUBECONFIG is not set and '{}' does not exist",
                        (fs::path(environment("HOME").value_or("/")) / ".kube" / "config").string());
}

absl::StatusOr<ClientConfig> LoadKubeconfig(const fs::path& path, const std::string& context) {
  const std::string what = "load kubeconfig '" + path.string() + "'";
  return GuardYaml(what, [&]() -> absl::StatusOr<ClientConfig> {
    MEDLEY_ASSIGN_OR_RETURN(Source source, ReadSource(path));
    if (!source.root.IsMap()) return base::InvalidArgument("no YAML mapping");
    return FromSources({std::move(source)}, context);
  });
}

absl::StatusOr<ClientConfig> FindCluster(const KubeconfigFlags& flags, const Environment& environment,
                                         const fs::path& root) {
  std::string names;
  std::vector<Source> sources;
  for (const fs::path& path : KubeconfigFiles(flags, environment)) {
    names += (names.empty() ? "'" : "', '") + path.string();
    auto source = GuardYaml("load kubeconfig '" + path.string() + "'", [&] { return ReadSource(path); });
    if (!source.ok()) return source.status();
    if (source->root.IsMap()) sources.push_back(*std::move(source));
  }
  absl::StatusOr<ClientConfig> config = ClientConfig();
  if (!flags.context.empty() || !CurrentContext(sources).empty()) {
    const std::string what = names.empty() ? "there is no kubeconfig" : "load kubeconfig " + names + "'";
    config = GuardYaml(what, [&] { return FromSources(sources, flags.context); });
  } else if (flags.kubeconfig.empty() && environment("KUBERNETES_SERVICE_HOST")) {
    config = InClusterConfig(environment, root);
    if (config.ok()) config->ns = environment("POD_NAMESPACE").value_or(config->ns);
  } else {
    const std::string why =
        !names.empty() ? "no current-context in " + names + "'; name one with --context"
                       : base::Message(KubeconfigPath(environment).status()) + "; name a kubeconfig with --kubeconfig";
    return base::FailedPrecondition("which cluster? {}", why);
  }
  if (config.ok() && !flags.ns.empty()) config->ns = flags.ns;
  return config;
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
  config.ca_file = (folder / "ca.crt").string();
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, base::ReadFile(config.ca_file, kMaxFile));
  if (const auto ns = base::ReadFile(folder / "namespace", kMaxFile); ns.ok()) {
    config.ns = Trimmed(*ns);
  }
  return config;
}

}  // namespace medley::kube

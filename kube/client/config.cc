#include "kube/client/config.h"

#include <absl/strings/escaping.h>

#include <cstdlib>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/document/parse.h"
#include "common/document/reader.h"
#include "kube/client/exec_credential.h"
#include "kube/object.h"

namespace medley::kube {
namespace {

namespace fs = std::filesystem;
using document::Reader;

constexpr int64_t kMaxFile = 16 << 20;

// One file of a kubeconfig.
struct Source {
  std::shared_ptr<const Json> tree;  // what `root` reads
  Reader root;
  fs::path folder;
};

struct Entry {
  Reader reader;
  fs::path folder;  // to which its file names are relative
};

// The `field` object of the first entry of `list` named `name`.
absl::StatusOr<Entry> Named(const std::vector<Source>& sources, const char* list, const char* field,
                            const std::string& name) {
  std::string known;
  for (const Source& source : sources) {
    for (const Reader& entry : source.root.List(list)) {
      const std::string found = entry.String("name");
      if (found == name && entry.Has(field)) return Entry{entry.Child(field), source.folder};
      known += (known.empty() ? "" : ", ") + found;
    }
  }
  return base::NotFound("the kubeconfig has no {} '{}'; it has {}", field, name, known.empty() ? "none" : known);
}

// "x-data" in base64, or the content of the file named by "x", whose name is kept in `name`.
absl::StatusOr<std::string> Pem(const Reader& reader, const std::string& field, const fs::path& folder,
                                std::string& name) {
  if (const std::string data = reader.String(field + "-data"); !data.empty()) {
    std::string decoded;
    if (!absl::Base64Unescape(data, &decoded)) {
      return base::InvalidArgument("{}.{}-data is not base64", reader.path(), field);
    }
    return decoded;
  }
  const std::string file = reader.String(field);
  if (file.empty()) return std::string();
  auto bytes = base::ReadFile(folder / file, kMaxFile);
  if (!bytes.ok()) return base::Annotate(bytes.status(), "read " + field);
  name = (folder / file).string();
  return bytes;
}

absl::Status ReadCluster(const Reader& cluster, const fs::path& folder, ClientConfig& config) {
  config.server = cluster.String("server");
  MEDLEY_RETURN_IF_ERROR(cluster.status());
  if (!config.server.starts_with("http://") && !config.server.starts_with("https://")) {
    return base::InvalidArgument("server '{}' of the cluster is no http or https URL", config.server);
  }
  while (config.server.ends_with('/')) config.server.pop_back();
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, Pem(cluster, "certificate-authority", folder, config.ca_file));
  config.insecure_skip_tls_verify = cluster.Bool("insecure-skip-tls-verify", false);
  config.tls_server_name = cluster.String("tls-server-name");
  config.proxy_url = cluster.String("proxy-url");
  return cluster.status();
}

// Another identity than the one that is meant would be used: what is not understood is refused.
absl::Status RefuseUnknown(const Reader& user) {
  for (const char* field : {"auth-provider", "as", "as-uid", "as-groups", "username"}) {
    if (user.Has(field)) {
      return base::Unimplemented("the user's credentials have '{}', which is not supported", field);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecPlugin> ReadExec(const Reader& exec, const fs::path& folder, const ClientConfig& config) {
  ExecPlugin plugin;
  plugin.api_version = exec.String("apiVersion");
  plugin.command = exec.RequiredString("command");
  const Json arguments = exec.Raw("args");  // which may be empty strings
  for (const Json& argument : arguments) {
    if (!argument.is_string()) return base::InvalidArgument("{}.args: must be a list of strings", exec.path());
    plugin.args.push_back(argument.get<std::string>());
  }
  for (const Reader& variable : exec.List("env")) {
    plugin.env.emplace_back(variable.RequiredString("name"), variable.String("value"));
  }
  plugin.install_hint = exec.String("installHint");
  plugin.interactive_mode = exec.String("interactiveMode");
  if (exec.Bool("provideClusterInfo", false)) {
    plugin.cluster = {config.server, config.ca_data, config.tls_server_name, config.insecure_skip_tls_verify};
  }
  MEDLEY_RETURN_IF_ERROR(exec.status());
  if (plugin.command.find('/') != std::string::npos) plugin.command = (folder / plugin.command).string();
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

absl::Status ReadUser(const Reader& user, const fs::path& folder, ClientConfig& config) {
  MEDLEY_RETURN_IF_ERROR(RefuseUnknown(user));
  MEDLEY_ASSIGN_OR_RETURN(config.client_certificate_data,
                          Pem(user, "client-certificate", folder, config.client_certificate_file));
  MEDLEY_ASSIGN_OR_RETURN(config.client_key_data, Pem(user, "client-key", folder, config.client_key_file));
  if (config.client_certificate_data.empty() != config.client_key_data.empty()) {
    return base::InvalidArgument("the user has a client certificate without a key, or a key without one");
  }
  config.token = base::Trim(user.String("token"));
  if (config.token.find_first_of("\r\n") != std::string::npos) {
    return base::InvalidArgument("the user's token has more than one line");
  }
  if (const std::string file = user.String("tokenFile"); !file.empty()) {
    config.token_file = (folder / file).string();
  }
  const Reader exec = user.Child("exec");
  MEDLEY_RETURN_IF_ERROR(user.status());
  // As kubectl: a token that is written down is taken before a plugin is run.
  if (!user.Has("exec") || !config.token.empty() || !config.token_file.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const ExecPlugin plugin, ReadExec(exec, folder, config));
  return UseExec(plugin, config);
}

std::string CurrentContext(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    if (std::string name = source.root.String("current-context"); !name.empty()) return name;
  }
  return "";
}

absl::StatusOr<ClientConfig> FromSources(const std::vector<Source>& sources, std::string context_name) {
  if (context_name.empty()) context_name = CurrentContext(sources);
  if (context_name.empty()) return base::NotFound("no current-context");
  MEDLEY_ASSIGN_OR_RETURN(const Entry context, Named(sources, "contexts", "context", context_name));
  MEDLEY_ASSIGN_OR_RETURN(const Entry cluster, Named(sources, "clusters", "cluster", context.reader.String("cluster")));
  ClientConfig config;
  MEDLEY_RETURN_IF_ERROR(ReadCluster(cluster.reader, cluster.folder, config));
  if (const std::string ns = context.reader.String("namespace"); !ns.empty()) config.ns = ns;
  const std::string user_name = context.reader.String("user");
  if (!user_name.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const Entry user, Named(sources, "users", "user", user_name));
    MEDLEY_RETURN_IF_ERROR(ReadUser(user.reader, user.folder, config));
  }
  MEDLEY_RETURN_IF_ERROR(context.reader.status());
  return config;
}

// Nothing for an empty file.
absl::StatusOr<std::optional<Source>> ReadSource(const fs::path& path) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxFile));
  MEDLEY_ASSIGN_OR_RETURN(Json tree, document::ParseYaml(text));
  if (tree.is_null()) return std::optional<Source>();
  if (!tree.is_object()) return base::InvalidArgument("the document must be an object");
  auto kept = std::make_shared<const Json>(std::move(tree));
  const Reader root(*kept);
  return Source{std::move(kept), root, path.parent_path()};
}

std::string What(const fs::path& path) { return "load kubeconfig '" + path.string() + "'"; }

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
  auto source = ReadSource(path);
  if (!source.ok()) return base::Annotate(source.status(), What(path));
  if (!source->has_value()) return base::InvalidArgument("{}: the file is empty", What(path));
  auto config = FromSources({**std::move(source)}, context);
  if (!config.ok()) return base::Annotate(config.status(), What(path));
  return config;
}

absl::StatusOr<ClientConfig> FindCluster(const KubeconfigFlags& flags, const Environment& environment,
                                         const fs::path& root) {
  std::string names;
  std::vector<Source> sources;
  for (const fs::path& path : KubeconfigFiles(flags, environment)) {
    names += (names.empty() ? "'" : "', '") + path.string();
    auto source = ReadSource(path);
    if (!source.ok()) return base::Annotate(source.status(), What(path));
    if (source->has_value()) sources.push_back(**std::move(source));
  }
  absl::StatusOr<ClientConfig> config = ClientConfig();
  if (!flags.context.empty() || !CurrentContext(sources).empty()) {
    const std::string what = names.empty() ? "there is no kubeconfig" : "load kubeconfig " + names + "'";
    config = FromSources(sources, flags.context);
    if (!config.ok()) return base::Annotate(config.status(), what);
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
  const bool ipv6 = host.find(':') != std::string::npos;  // the environment has it without brackets
  config.server = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port;
  config.token_file = (folder / "token").string();
  MEDLEY_ASSIGN_OR_RETURN(config.token, base::ReadFile(config.token_file, kMaxFile));
  config.token = std::string(base::Trim(config.token));
  config.ca_file = (folder / "ca.crt").string();
  MEDLEY_ASSIGN_OR_RETURN(config.ca_data, base::ReadFile(config.ca_file, kMaxFile));
  if (const auto ns = base::ReadFile(folder / "namespace", kMaxFile); ns.ok()) {
    config.ns = base::Trim(*ns);
  }
  return config;
}

}  // namespace medley::kube

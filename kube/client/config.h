// The address of an API server and the credentials for it, from a kubeconfig file or from inside a pod.
//
// Pure, except that functions read files and run the user's credential plugin. A field that names a file wins over the
// field with its data. Because tokens and certificates are rotated, the file is read again after a minute, after a 401
// and after a failure of TLS.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace medley::kube {

struct ClientConfig {
  std::string server;          // "https://host:port" or "http://host:port", no trailing slash
  std::string ns = "default";  // for callers that were given no namespace

  std::string ca_data;  // PEM; empty: the system's certificates
  std::string ca_file;
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;  // empty: the host of `server`

  std::string client_certificate_data;  // PEM
  std::string client_key_data;          // PEM
  std::string client_certificate_file;
  std::string client_key_file;
  std::string token;  // bearer
  std::string token_file;
  // Gets a new token from a credential plugin, after a 401. Null: no plugin. Thread-safe.
  std::function<absl::StatusOr<std::string>()> token_source;
  std::string proxy_url;  // empty: https_proxy etc. of the environment, except for a server on a loopback address

  std::string user_agent = "medley/0.1";
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds request_timeout{30'000};  // for one attempt; for a watch, until its first byte
  int max_retries = 10;                               // of 429 and of 5xx with Retry-After
  std::chrono::seconds max_retry_after{30};           // a longer Retry-After is cut to this
};

// Returns the value of an environment variable; nullopt when it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// The first existing path of $KUBECONFIG, else $HOME/.kube/config. Errors: NotFound when none exists.
absl::StatusOr<std::filesystem::path> KubeconfigPath(const Environment& environment);

// `context` empty: current-context. Relative file names are relative to the kubeconfig's folder. Runs the user's
// `exec` plugin, if it has one (exec_credential.h). Errors: NotFound (file, context, cluster or user),
// InvalidArgument (YAML, base64, no server), Unimplemented (auth-provider, impersonation, passwords), and the
// plugin's.
absl::StatusOr<ClientConfig> LoadKubeconfig(const std::filesystem::path& path, const std::string& context = "");

// The values of kubectl's flags of these names; empty: not given.
struct KubeconfigFlags {
  std::string kubeconfig;
  std::string context;
  std::string ns;
};

// Finds the cluster that kubectl would use: --kubeconfig alone when given; else all files of $KUBECONFIG that exist,
// merged (the first that names a context, a cluster, a user or the current context wins); else $HOME/.kube/config; else
// the service account of the pod of this process (below `root`). The namespace: flag, context (in a pod:
// $POD_NAMESPACE, the account's), "default". Errors: as LoadKubeconfig; FailedPrecondition when nothing names a
// cluster.
absl::StatusOr<ClientConfig> FindCluster(const KubeconfigFlags& flags, const Environment& environment,
                                         const std::filesystem::path& root = "/");

// A pod's service account: KUBERNETES_SERVICE_HOST and _PORT, and token, ca.crt and namespace under
// `root`/var/run/secrets/kubernetes.io/serviceaccount. Errors: FailedPrecondition outside of a cluster.
absl::StatusOr<ClientConfig> InClusterConfig(const Environment& environment, const std::filesystem::path& root = "/");

}  // namespace medley::kube

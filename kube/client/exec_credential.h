// Credential plugins of kubeconfigs (client.authentication.k8s.io): programs that print an ExecCredential. Clouds use
// them for short-lived tokens. Internal to kube/client. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace medley::kube {

struct ExecPlugin {
  struct Cluster {  // passed to the plugin if the kubeconfig sets provideClusterInfo
    std::string server;
    std::string ca_data;  // PEM
    std::string tls_server_name;
    bool insecure_skip_tls_verify = false;
  };
  std::string api_version;  // client.authentication.k8s.io/v1, ...
  std::string command;      // a path, or a name that is looked up in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to the environment of this process
  std::string install_hint;
  std::string interactive_mode;  // Never, IfAvailable, Always
  std::optional<Cluster> cluster;
  std::chrono::seconds timeout{60};
};

struct ExecCredential {
  std::string token;
  std::string client_certificate_data;  // PEM
  std::string client_key_data;
};

// Runs the plugin. It inherits stderr; it also inherits stdin if it may ask the user and there is a terminal. Errors:
// NotFound (no such program; the message contains the install hint), FailedPrecondition (the plugin failed or needs a
// terminal), DeadlineExceeded, InvalidArgument (its output is not a credential).
absl::StatusOr<ExecCredential> RunExecPlugin(const ExecPlugin& plugin);

}  // namespace medley::kube

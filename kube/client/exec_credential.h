// Credential plugins of kubeconfigs (client.authentication.k8s.io): a program that prints an ExecCredential. Clouds use
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
  struct Cluster {  // what it is told of the cluster, when it wants to be
    std::string server;
    std::string ca_data;  // PEM
    std::string tls_server_name;
    bool insecure_skip_tls_verify = false;
  };
  std::string api_version;  // client.authentication.k8s.io/v1, ...
  std::string command;      // a path, or a name to be found in PATH
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to this process's own
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

// Runs the plugin; its stderr is this process's, its stdin as well where it may ask and there is a terminal. Errors:
// NotFound (no such program, with the hint how to install it), FailedPrecondition (it failed, it needs a terminal),
// DeadlineExceeded, InvalidArgument (what it printed is no credential).
absl::StatusOr<ExecCredential> RunExecPlugin(const ExecPlugin& plugin);

}  // namespace medley::kube

// The parsed and checked command line options.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <vector>

#include "scheduler-service/process/address.h"

namespace medley::sched {

struct ServiceOptions {
  std::string grpc_listen = "127.0.0.1:7070";
  std::string rest_listen = "127.0.0.1:7071";
  std::string prices;
  std::string catalog_config;
  std::string planners;
  std::string port_file;
  std::string state_dir;
  bool learn_online = false;
  double poll_seconds = 2;
  // Limits of requests and responses.
  int max_concurrent = 4;
  int max_waiting = 16;
  double max_wait_seconds = 1;
  double max_planning_seconds = 60;
  int cache_mib = 32;
  int max_body_kib = 4096;
  int max_connections = 256;
  double receive_seconds = 20;
  double grace_seconds = 10;
  // Security.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  // Instead of tls_cert and tls_key: the service signs a certificate for tls_names itself, again and again.
  std::string tls_ca_cert;
  std::string tls_ca_key;
  std::vector<std::string> tls_names;
  double tls_lifetime_seconds = 86400;
  std::string token_file;
  std::string operator_token_file;
  std::vector<std::string> rest_hosts;
  std::vector<std::string> open_paths = {"/healthz", "/readyz"};
  bool insecure = false;
  std::string log_level = "info";
};

// Checks that the security options are consistent: TLS needs a certificate and a key, and a non-loopback address needs
// TLS and a token file unless `insecure` is set. Errors: InvalidArgument, FailedPrecondition.
absl::Status CheckSecurity(const ServiceOptions& options, const Address& grpc, const Address& rest);

// Parses the command line into `options`. A returned value is the exit code: the program must exit because it printed
// the help or an error.
std::optional<int> ParseOptions(int argc, char** argv, ServiceOptions& options);

}  // namespace medley::sched

// What the command line says, checked.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

namespace medley::sched {

struct Options {
  std::string grpc_listen = "127.0.0.1:7070";
  std::string rest_listen = "127.0.0.1:7071";
  std::string prices;
  std::string catalog_config;
  std::string port_file;
  std::string state_dir;
  bool learn_online = false;
  double poll_seconds = 2;
  // Answering.
  int max_concurrent = 4;
  int max_waiting = 16;
  double max_wait_seconds = 1;
  double max_planning_seconds = 60;
  int cache_mib = 32;
  int max_body_kib = 4096;
  int max_connections = 1024;
  double receive_seconds = 20;
  double grace_seconds = 10;
  // Security.
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::string token_file;
  std::vector<std::string> open_paths = {"/healthz", "/readyz"};
  bool insecure = false;
  std::string log_level = "info";
};

struct Address {
  std::string host;
  int port = 0;
  bool loopback() const;
};

// "HOST:PORT"; ":PORT" is every interface. Errors: InvalidArgument naming `flag`.
absl::StatusOr<Address> ParseAddress(const std::string& text, const std::string& flag);

// Whether what is asked for is safe: TLS needs both files, and an address that others can reach needs TLS and a token,
// unless the user says `insecure`. Errors: InvalidArgument, FailedPrecondition.
absl::Status CheckSecurity(const Options& options, const Address& grpc, const Address& rest);

// Reads the command line. A code: leave with it (help, or a mistake that was printed).
std::optional<int> ParseOptions(int argc, char** argv, Options& options);

}  // namespace medley::sched

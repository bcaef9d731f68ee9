#include "scheduler-service/app/options.h"

#include <CLI/CLI.hpp>

#include "common/base/status.h"

namespace medley::sched {
namespace {

void AddServing(CLI::App& app, ServiceOptions& o) {
  app.add_option("--grpc-listen", o.grpc_listen, "HOST:PORT for gRPC; port 0 picks a free port")->capture_default_str();
  app.add_option("--rest-listen", o.rest_listen, "HOST:PORT for REST and the web page; port 0 picks a free port")
      ->capture_default_str();
  auto* prices =
      app.add_option("--prices", o.prices, "price file (YAML, JSON or CSV); the service reloads it when it changes");
  app.add_option("--catalog-config", o.catalog_config,
                 "configuration of price feeds and resource types (docs/operate/prices.md)")
      ->excludes(prices);
  app.add_option("--planners", o.planners,
                 "configuration of further planners, which are processes of their own (docs/operate/planners.md)");
  app.add_option("--port-file", o.port_file,
                 "write the gRPC and REST ports to this file as JSON once the service is ready");
  app.add_option("--state-dir", o.state_dir,
                 "directory for corrections and policies, kept across restarts; requests may use the policies in "
                 "policies/NAME.policy by name");
  app.add_flag("--learn-online", o.learn_online,
               "train the policies of rl-lstm on observations; requests select them with planner.policy.name: online");
  app.add_option("--poll-seconds", o.poll_seconds, "seconds between checks of the price file")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--log-level", o.log_level, "debug, info, warn, error, off")->capture_default_str();
}

void AddLimits(CLI::App& app, ServiceOptions& o) {
  app.add_option("--max-concurrent", o.max_concurrent,
                 "requests processed at the same time; expensive ones use at most half of the "
                 "places, and one more is only for the operator")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--max-waiting", o.max_waiting,
                 "requests of each class of cost that may wait in the queue; more are "
                 "rejected")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--max-wait-seconds", o.max_wait_seconds, "seconds that a request may wait in the queue")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app.add_option("--max-planning-seconds", o.max_planning_seconds,
                 "upper bound of one request's planning time, in seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--cache-mib", o.cache_mib, "size of the response cache in MiB; 0 disables it")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--max-body-kib", o.max_body_kib, "largest request in KiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-connections", o.max_connections, "largest number of open REST connections")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--receive-seconds", o.receive_seconds, "seconds to receive a whole REST request")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--grace-seconds", o.grace_seconds, "seconds that running requests may take after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
}

void AddSecurity(CLI::App& app, ServiceOptions& o) {
  app.add_option("--tls-cert", o.tls_cert, "certificate chain (PEM); the service reloads it when it changes");
  app.add_option("--tls-key", o.tls_key, "private key of the certificate (PEM)");
  app.add_option("--tls-ca-cert", o.tls_ca_cert,
                 "certificate of a CA (PEM) with which the service signs its own certificate, instead of --tls-cert");
  app.add_option("--tls-ca-key", o.tls_ca_key, "private key of that CA (PEM)");
  app.add_option("--tls-name", o.tls_names, "DNS name or IP address in that certificate; may be repeated");
  app.add_option("--tls-lifetime-seconds", o.tls_lifetime_seconds,
                 "lifetime of that certificate; it is renewed when two thirds have passed")
      ->capture_default_str()
      ->check(CLI::Range(3.0, 365.0 * 86400));
  app.add_option("--tls-client-ca", o.tls_client_ca,
                 "CA certificate (PEM); clients must present a certificate that it signed");
  CLI::Option* tokens = app.add_option("--token-file", o.token_file,
                                       "file with one bearer token per line; callers must send one of them");
  app.add_option("--operator-token-file", o.operator_token_file,
                 "file with further bearer tokens, of the operator: its requests have places that no others can take")
      ->needs(tokens);
  app.add_option("--rest-host", o.rest_hosts,
                 "a name by which clients reach REST, besides localhost; may be repeated. Without a token, requests to "
                 "other names are refused");
  app.add_option("--open-paths", o.open_paths, "REST paths that need no token, besides the web page's files")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--insecure", o.insecure,
               "allow listening on non-loopback addresses without TLS and token, and planners there without TLS");
}

}  // namespace

absl::Status CheckSecurity(const ServiceOptions& options, const Address& grpc, const Address& rest) {
  const bool signs = !options.tls_ca_cert.empty();
  if (signs != !options.tls_ca_key.empty() || signs != !options.tls_names.empty()) {
    return base::InvalidArgument("--tls-ca-cert, --tls-ca-key and --tls-name must be given together");
  }
  if (signs && !options.tls_cert.empty()) {
    return base::InvalidArgument("--tls-cert and --tls-ca-cert exclude each other");
  }
  const bool tls = signs || !options.tls_cert.empty();
  if (!options.tls_cert.empty() != !options.tls_key.empty())
    return base::InvalidArgument("--tls-cert and --tls-key must be given together");
  if (!tls && !options.tls_client_ca.empty()) return base::InvalidArgument("--tls-client-ca needs --tls-cert");
  const bool secure = options.insecure || (tls && !options.token_file.empty());
  MEDLEY_RETURN_IF_ERROR(CheckExposure(grpc, "--grpc-listen", secure));
  return CheckExposure(rest, "--rest-listen", secure);
}

std::optional<int> ParseOptions(int argc, char** argv, ServiceOptions& options) {
  CLI::App app("Medley's scheduling service: decides which layers run on which machine type, and on how many of each.");
  AddServing(app, options);
  AddLimits(app, options);
  AddSecurity(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;  // 0: help
  }
  return std::nullopt;
}

}  // namespace medley::sched

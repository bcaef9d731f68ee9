#include "reproductions/app/options.h"

#include <CLI/CLI.hpp>

namespace medley::reproductions::app {

std::optional<int> ParseOptions(int argc, char** argv, PlannerProgramOptions& o) {
  CLI::App app("A planner process for Medley's scheduling service (docs/operate/planners.md).");
  app.add_option("--listen", o.listen, "HOST:PORT; port 0 picks a free port")->capture_default_str();
  app.add_option("--planner", o.planner, "planner of requests that name none of this program's planners")
      ->capture_default_str();
  app.add_option("--port-file", o.port_file, "write the port to this file as JSON once the planner is ready");
  app.add_option("--max-concurrent", o.max_concurrent, "requests processed at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--max-waiting", o.max_waiting, "requests that may wait; more are refused")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--max-message-kib", o.max_message_kib, "largest request in KiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--grace-seconds", o.grace_seconds, "seconds that running requests may take after SIGTERM")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--tls-cert", o.tls_cert, "certificate chain (PEM); it is read again when it changes");
  app.add_option("--tls-key", o.tls_key, "private key of the certificate (PEM)");
  app.add_option("--tls-client-ca", o.tls_client_ca,
                 "CA certificate (PEM); callers must present a certificate that it signed");
  app.add_option("--token-file", o.token_file, "file with one bearer token per line; callers must send one of them");
  app.add_flag("--insecure", o.insecure, "allow listening on non-loopback addresses without TLS and token");
  app.add_option("--answer", o.answer,
                 "answer the planning request in this file on standard output, and exit; - reads standard input");
  app.add_flag("--list", o.list, "print the planners and what they take on standard output, as JSON, and exit");
  app.add_option("--log-level", o.log_level, "debug, info, warn, error, off")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;  // 0: help
  }
  return std::nullopt;
}

}  // namespace medley::reproductions::app

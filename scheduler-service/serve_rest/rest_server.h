// The scheduling service over HTTP: the same handlers as gRPC, with proto3 JSON responses and JSON or YAML requests.
//
//   /v1/...                       routes.h
//   GET /openapi.json             the description of these routes
//   GET /healthz /readyz /metrics
//   GET / ...                     the web page (RestContext::files)
//
// An error has the body {"code", "message", "field"} and one of the HTTP codes of HttpCode, or 405, 411, 413, 415, 421
// or 431. A request may have an ID (X-Request-Id) and a timeout in seconds (Request-Timeout).
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/bearer_token.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/request_id.h"
#include "scheduler-service/serve_rest/static_file.h"

namespace medley::sched {

// PEM files, read again when they change.
struct RestTls {
  std::string certificate;  // with its chain
  std::string key;
  std::string client_ca;  // empty: clients need no certificate
};

struct RestOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: a free port, which port() returns
  // Where no token is required, requests are answered only if their Host is an address of this machine only, `host` or
  // one of these names: a web page could otherwise reach the service by a name of its own (DNS rebinding).
  std::vector<std::string> names;
  int64_t max_body_bytes = int64_t{4} << 20;
  std::optional<RestTls> tls;  // nullopt: no TLS
  BearerTokens tokens;         // callers without a valid token get 401
  // These paths, and the files of the web page, need no token.
  std::vector<std::string> open_paths = {"/healthz", "/readyz"};
  base::milliseconds idle{90'000};     // longest time between two requests of a connection
  base::milliseconds receive{20'000};  // longest time to receive a request
  int max_connections = 256;
};

// The objects that the server uses. References are borrowed; `stop` ends planning.
struct RestContext {
  Handlers& handlers;
  RequestIds& ids;
  metrics::Registry& metrics;
  base::Clock& clock;
  std::function<bool()> ready;  // the result of /readyz
  std::stop_token stop;
  std::vector<StaticFile> files;
};

class RestServer {
 public:
  // Errors: AlreadyExists naming an address that is in use; InvalidArgument for an invalid host or certificate;
  // NotFound for a missing certificate file.
  static absl::StatusOr<std::unique_ptr<RestServer>> Start(const RestOptions& options, RestContext context);
  virtual ~RestServer() = default;  // closes the listener and waits for running requests
  virtual int port() const = 0;
  // The number of requests that have been read and whose response has not been sent completely.
  virtual int answering() const = 0;
  // Waits until this number is 0; returns false after `timeout`.
  virtual bool WaitAnswered(base::nanoseconds timeout) = 0;
};

}  // namespace medley::sched

// The scheduling service over HTTP: the same handlers as gRPC, in proto3 JSON; requests in JSON or YAML.
//
//   /v1/...                      routes.h
//   GET /openapi.json            describes them
//   GET /healthz /readyz /metrics
//   GET / ...                    the web page (RestContext::files)
// Errors are {"code", "message", "field"}: 400, 401, 404, 405, 408, 411, 413, 415, 429, 499, 503, 504. A request may
// name itself (X-Request-Id) and say how long it waits (Request-Timeout, seconds).
// Thread-safe. This is the only folder that sees cpprestsdk.
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
#include "scheduler-service/serve_rest/tls_files.h"

namespace medley::sched {

struct RestOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: a free one, see port()
  int64_t max_body_bytes = int64_t{4} << 20;
  std::optional<TlsFiles::Paths> tls;  // none: plain text
  BearerTokens tokens;                 // callers without one get 401
  // Answered without a token, as the files of the page are.
  std::vector<std::string> open_paths = {"/healthz", "/readyz"};
  int work_threads = 20;                          // requests that are answered or wait for their turn
  base::nanoseconds idle = base::seconds(90);     // of a connection; longer than any planning
  base::nanoseconds receive = base::seconds(20);  // of one request
  size_t max_connections = 1024;
};

// What it serves. Everything is borrowed; `stop` ends planning.
struct RestContext {
  Handlers& handlers;
  RequestIds& ids;
  metrics::Registry& metrics;
  base::Clock& clock;
  std::function<bool()> ready;  // answers /readyz
  std::stop_token stop;
  std::vector<StaticFile> files;
};

class RestServer {
 public:
  // Errors: AlreadyExists naming the address when it is in use, InvalidArgument for a host that cannot be listened on
  // or certificates that are not good, NotFound.
  static absl::StatusOr<std::unique_ptr<RestServer>> Start(const RestOptions& options, RestContext context);
  virtual ~RestServer() = default;  // closes and waits for running answers
  virtual int port() const = 0;
  // Requests that have arrived and are not answered to the end.
  virtual int answering() const = 0;
  // Waits until there are none; false when that took longer than `timeout`.
  virtual bool WaitAnswered(base::nanoseconds timeout) = 0;
};

}  // namespace medley::sched

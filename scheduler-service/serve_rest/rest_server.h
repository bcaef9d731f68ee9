// The scheduling service over HTTP: the same handlers as gRPC, in proto3 JSON.
//
//   POST /v1/plan /v1/provision /v1/evaluate      200 (also when infeasible), 400 with the field's path, 413, 429, 504
//   GET  /v1/planners /v1/catalog /healthz /readyz /metrics
// Errors are {"code": "INVALID_ARGUMENT", "message": "..."}. Thread-safe. This is the only folder that sees cpprestsdk.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/metrics/metrics.h"
#include "scheduler-service/handlers/handlers.h"

namespace medley::sched {

struct RestOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: a free one, see port()
  int64_t max_body_bytes = int64_t{8} << 20;
};

// The library's threads are shared by the whole process: call once in main, before any server. Default: one a core.
void UseRestThreads(int threads);

class RestServer {
 public:
  // `ready` answers /readyz. Borrows handlers and metrics. Errors: AlreadyExists naming the address when it is in use,
  // InvalidArgument for a host that cannot be listened on.
  static absl::StatusOr<std::unique_ptr<RestServer>> Start(const RestOptions& options, Handlers& handlers,
                                                           const metrics::Registry& metrics,
                                                           std::function<bool()> ready, std::stop_token stop);
  virtual ~RestServer() = default;  // closes and waits for running answers
  virtual int port() const = 0;
};

}  // namespace medley::sched

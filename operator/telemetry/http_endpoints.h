// /metrics, /healthz, /livez and /readyz for probes and scrapers, on common/http_server. Probes need no token.
// Thread-safe.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>

#include "common/http_server/readers.h"
#include "common/http_server/server.h"

namespace medley::ops {

class HttpEndpoints {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;                       // 0: the system chooses
    http_server::Readers readers = {};  // of /metrics; everybody may ask for the others
  };
  // Called by several threads at once.
  struct Sources {
    std::function<std::string()> metrics;  // text exposition
    std::function<absl::Status()> healthy;
    std::function<absl::Status()> ready;
  };
  HttpEndpoints(Options options, Sources sources);

  // Errors: as HttpServer::Start.
  absl::Status Start() { return server_.Start(); }
  void Stop() { server_.Stop(); }  // idempotent; joins
  int port() const { return server_.port(); }

 private:
  http_server::HttpServer server_;
};

}  // namespace medley::ops

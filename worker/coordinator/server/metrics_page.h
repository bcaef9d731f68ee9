// GET /metrics of the coordinator: the latest observation in Prometheus' text format. Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>

#include "common/http_server/readers.h"
#include "common/http_server/server.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

// The page for one observation.
std::string MetricsText(const job::v1::Observation& observation);

class MetricsPage {
 public:
  // `port` 0: the system chooses. `observe` is called by several threads at once. Errors: as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<MetricsPage>> Start(const std::string& host, int port,
                                                            http_server::Readers readers,
                                                            std::function<job::v1::Observation()> observe);
  int port() const { return server_.port(); }

 private:
  MetricsPage(const std::string& host, int port, http_server::Readers readers,
              std::function<job::v1::Observation()> observe);

  http_server::HttpServer server_;
};

}  // namespace medley::worker

// Where a program posts which step it has finished: POST http://127.0.0.1:PORT/v1/progress {"step": 12, "loss": 0.4}.
//
// Listens on the loopback address of the pod only. Pages of a browser are refused (common/http_server/local_caller.h).
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string_view>

#include "common/model/progress_pattern.h"

namespace medley::http_server {
class HttpServer;
}

namespace medley::worker {

// Reads the body of a report. Errors: InvalidArgument: no object with an integer `step` from 1 on, or with a `loss`
// that is no finite number. Other fields are ignored.
absl::StatusOr<model::StepReport> ReadReport(std::string_view body);

class ProgressPort {
 public:
  // `report` is called by threads of connections. Errors: those of HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<ProgressPort>> Open(std::function<void(const model::StepReport&)> report);
  ~ProgressPort();
  int port() const;

 private:
  explicit ProgressPort(std::unique_ptr<http_server::HttpServer> server);
  const std::unique_ptr<http_server::HttpServer> server_;
};

}  // namespace medley::worker

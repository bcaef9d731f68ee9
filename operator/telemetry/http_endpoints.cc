#include "operator/telemetry/http_endpoints.h"

#include "common/base/status.h"
#include "common/metrics/metrics.h"

namespace medley::ops {
namespace {

using http_server::HttpRequest;
using http_server::HttpResponse;

HttpResponse Plain(int code, std::string body) {
  return {.code = code, .content_type = "text/plain", .body = std::move(body)};
}

HttpResponse Check(const std::function<absl::Status()>& check) {
  const absl::Status status = check();
  return status.ok() ? Plain(200, "ok\n") : Plain(503, base::ToString(status) + "\n");
}

HttpResponse Route(const HttpRequest& request, const http_server::Readers& readers,
                   const HttpEndpoints::Sources& sources) {
  if (request.method != "GET" && request.method != "HEAD") return Plain(405, "GET only\n");
  if (request.path == "/metrics") {
    if (!readers.Allow(request)) return http_server::Readers::Refusal();
    return {.content_type = metrics::kTextContentType, .body = sources.metrics()};
  }
  if (request.path == "/healthz" || request.path == "/livez") return Check(sources.healthy);
  if (request.path == "/readyz") return Check(sources.ready);
  return Plain(404, "not found\n");
}

}  // namespace

HttpEndpoints::HttpEndpoints(Options options, Sources sources)
    : server_({.address = std::move(options.address), .port = options.port, .max_connections = 64, .max_body = 0},
              [readers = std::move(options.readers), sources = std::move(sources)](const HttpRequest& request) {
                return Route(request, readers, sources);
              }) {}

}  // namespace medley::ops

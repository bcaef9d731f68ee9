#include "common/http_server/local_caller.h"

#include "common/base/host_port.h"

namespace medley::http_server {

bool HasLocalHost(const HttpRequest& request) {
  if (const auto parts = base::SplitHostPort(request.host); parts.ok()) return base::IsLoopback(parts->host);
  return request.host == "[::1]" || (request.host != "::1" && base::IsLoopback(request.host));
}

bool HasOwnOrigin(const HttpRequest& request) {
  return request.origin.empty() || request.origin == "http://" + request.host ||
         request.origin == "https://" + request.host;
}

}  // namespace medley::http_server

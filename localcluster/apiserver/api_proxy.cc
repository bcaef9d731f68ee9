// The subresource proxy of pods: GET only, of a port of the pod's address.
#include <arpa/inet.h>
#include <fmt/format.h>

#include "common/base/host_port.h"
#include "common/base/status.h"
#include "common/http_client/connection.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/table.h"

namespace medley::localcluster::apiserver {
namespace {

constexpr std::chrono::milliseconds kTimeout{60'000};
constexpr size_t kMaxBytes = size_t{256} << 20;  // of one answer, which is kept in memory

bool IsAddress(const std::string& text) {
  in6_addr parsed{};
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 || inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

}  // namespace

absl::StatusOr<HttpResponse> Api::Proxy(const Route& route) {
  const auto target = base::SplitHostPort(route.name);
  if (!target.ok() || target->port == 0) return BadRequest("name the port: pods/NAME:PORT/proxy");
  const std::string& name = target->host;
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr pod, rest_.Get(*route.info, {route.ns, name}));
  const kube::Json address = JsonPath(pod->json(), ".status.podIP");
  // A client can write the status: nothing but an address becomes part of the URL.
  if (!address.is_string() || !IsAddress(address.get<std::string>())) {
    return ApiError(503, "ServiceUnavailable", fmt::format("pod {} has no address", name));
  }
  http_client::Connection connection({.user_agent = "medley-apiserver"});
  const std::string url = fmt::format("http://{}{}", base::JoinHostPort(address.get<std::string>(), target->port),
                                      route.rest.empty() ? "/" : route.rest);
  const http_client::Result result =
      connection.Run({.url = url, .timeout = kTimeout, .max_body_bytes = kMaxBytes}, "proxy", {});
  if (!result.status.ok()) {
    return ApiError(503, "ServiceUnavailable",
                    fmt::format("error trying to reach pod {}: {}", name, base::Message(result.status)));
  }
  HttpResponse response;
  response.code = result.response.code;
  response.content_type = result.response.Header("Content-Type");
  response.body = result.response.body;
  return response;
}

}  // namespace medley::localcluster::apiserver

#include "localcluster/apiserver/api.h"

#include <fmt/format.h>

#include "common/base/status.h"
#include "common/base/url.h"
#include "common/http_server/local_caller.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/apiserver/discovery.h"
#include "localcluster/apiserver/openapi.h"

namespace medley::localcluster::apiserver {
namespace {

std::vector<std::string> Split(const std::string& path) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at < path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    if (end > at) parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Compares in constant time, so that the time does not reveal how much of a token was right.
bool SameSecret(const std::string& a, const std::string& b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && !b.empty(); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  }
  return difference == 0;
}

absl::Status NoSuchPath() { return ApiError(404, "NotFound", "the server could not find the requested resource"); }

std::string DiscoveryVersion(const std::string& accept) {
  const size_t at = accept.find("as=APIGroupDiscoveryList");
  if (at == std::string::npos) return "";
  return accept.find("v=v2;") != std::string::npos ? "v2" : "v2beta1";
}

HttpResponse AggregatedResponse(const Registry& registry, bool core, const std::string& version) {
  HttpResponse response;
  response.content_type = fmt::format("application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList", version);
  response.body = Aggregated(registry, core, version).dump();
  response.headers.emplace_back("Vary", "Accept");
  return response;
}

HttpResponse Text(const char* text) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = text;
  return response;
}

std::string VerbOf(const HttpRequest& request, bool named) {
  if (request.method == "GET" || request.method == "HEAD") {
    if (request.Is("watch")) return "watch";
    return named ? "get" : "list";
  }
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return named ? "update" : "";
  if (request.method == "PATCH") return named ? "patch" : "";
  if (request.method == "DELETE") return named ? "delete" : "deletecollection";
  return "";
}

absl::Status StatusOf(const Fault& fault) {
  if (fault.code == 504) return TooLargeVersion(2, 1);
  const std::string reason = !fault.reason.empty() ? fault.reason
                             : fault.code == 410   ? "Expired"
                             : fault.code == 409   ? "Conflict"
                             : fault.code == 429   ? "TooManyRequests"
                             : fault.code == 503   ? "ServiceUnavailable"
                                                   : "InternalError";
  kube::Json details;
  if (fault.retry_after_seconds > 0) details = {{"retryAfterSeconds", fault.retry_after_seconds}};
  return ApiError(fault.code, reason, "scripted fault", std::move(details));
}

// Returns false if stopped. (Not inlined: otherwise gcc 12 warns of a use after free in copies of the token.)
[[gnu::noinline]] bool Linger(base::nanoseconds delay, const std::stop_token& stop) {
  base::SystemClock clock;
  return clock.SleepFor(delay, stop);
}

// Sends half of the body, waits, then sends the rest. A stream waits after the header.
void SlowDown(base::nanoseconds delay, HttpResponse* response) {
  if (response->stream) {
    response->stream = [delay, rest = std::move(response->stream)](BodySink& sink, std::stop_token stop) {
      if (Linger(delay, stop)) rest(sink, std::move(stop));
    };
    return;
  }
  response->stream = [delay, body = std::move(response->body)](BodySink& sink, std::stop_token stop) {
    const std::string_view text(body);
    if (!sink.Write(text.substr(0, text.size() / 2))) return;
    if (Linger(delay, stop)) sink.Write(text.substr(text.size() / 2));
  };
}

}  // namespace

Api::Api(Options options, Rest& rest, FaultScript& faults)
    : options_(std::move(options)), rest_(rest), faults_(faults), tokens_(options_.tokens) {}

void Api::SetTokens(std::map<std::string, std::string> tokens) {
  base::MutexLock lock(tokens_mutex_);
  tokens_ = std::move(tokens);
}

void Api::SetLogReader(LogReader* reader) { logs_.Set(reader); }

HttpResponse Api::Handle(const HttpRequest& request) {
  if (options_.on_request) {
    options_.on_request({request.method, request.path, request.user_agent, request.Is("watch")});
  }
  absl::StatusOr<HttpResponse> response = Dispatch(request);
  return response.ok() ? std::move(*response) : ErrorAnswer(response.status());
}

absl::Status Api::Authenticate(const HttpRequest& request) {
  if (!options_.authenticate || !request.client_name.empty()) return absl::OkStatus();
  static constexpr std::string_view kBearer = "Bearer ";
  bool known = false;
  if (std::string_view(request.authorization).starts_with(kBearer)) {
    const std::string token = request.authorization.substr(kBearer.size());
    base::MutexLock lock(tokens_mutex_);
    for (const auto& [one, user] : tokens_) known = SameSecret(token, one) || known;
  }
  return known ? absl::OkStatus() : ApiError(401, "Unauthorized", "Unauthorized");
}

absl::StatusOr<HttpResponse> Api::Dispatch(const HttpRequest& request) {
  if (options_.local_only && !http_server::HasLocalHost(request)) {
    return ApiError(403, "Forbidden", "this server answers only requests to a name of this machine, as 127.0.0.1");
  }
  if (options_.local_only && !http_server::HasOwnOrigin(request)) {
    return ApiError(403, "Forbidden", "this server answers no requests of other sites' web pages");
  }
  MEDLEY_RETURN_IF_ERROR(Authenticate(request));
  const std::string& path = request.path;
  if (path == "/healthz" || path == "/readyz" || path == "/livez") return Text("ok");
  if (path == "/version") return JsonResponse(VersionInfo());
  MEDLEY_ASSIGN_OR_RETURN(std::optional<HttpResponse> document, Documents(request));
  if (document.has_value()) return std::move(*document);
  MEDLEY_ASSIGN_OR_RETURN(const Route route, Parse(request));
  return Serve(route, request);
}

absl::StatusOr<std::optional<HttpResponse>> Api::Documents(const HttpRequest& request) {
  const std::vector<std::string> parts = Split(request.path);
  const Registry& registry = rest_.registry();
  const std::string aggregated = DiscoveryVersion(request.accept);
  kube::Json document;
  if (parts.empty()) {
    document = {
        {"paths",
         {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}}};
  } else if (parts[0] == "openapi") {
    return OpenApiDocument(registry, parts, request);
  } else if (parts[0] == "api" && parts.size() == 1) {
    if (!aggregated.empty()) return AggregatedResponse(registry, true, aggregated);
    document = CoreVersions(options_.address);
  } else if (parts[0] == "apis" && parts.size() == 1) {
    if (!aggregated.empty()) return AggregatedResponse(registry, false, aggregated);
    document = GroupList(registry);
  } else if (parts[0] == "apis" && parts.size() == 2) {
    document = Group(registry, parts[1]);
    if (document.is_null()) return NoSuchPath();
  } else if (parts[0] == "api" && parts.size() == 2) {
    document = ResourceList(registry, "", parts[1]);
    if (document.is_null()) return NoSuchPath();
  } else if (parts[0] == "apis" && parts.size() == 3) {
    document = ResourceList(registry, parts[1], parts[2]);
    if (document.is_null()) return NoSuchPath();
  } else {
    return std::optional<HttpResponse>();
  }
  if (request.method != "GET") return MethodNotAllowed("only GET is allowed on this path");
  return JsonResponse(document);
}

absl::StatusOr<Route> Api::Parse(const HttpRequest& request) const {
  std::vector<std::string> parts = Split(request.path);
  const bool core = !parts.empty() && parts[0] == "api";
  if (!core && (parts.empty() || parts[0] != "apis")) return NoSuchPath();
  const size_t prefix = core ? 2 : 3;
  if (parts.size() <= prefix) return NoSuchPath();
  const std::string group = core ? "" : parts[1];
  const std::string version = parts[prefix - 1];
  parts.erase(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(prefix));
  Route route;
  // /namespaces/NS/PLURAL... is inside a namespace; /namespaces/NAME and /namespaces/NAME/status are the namespace
  // itself.
  const bool own = parts.size() == 3 && (parts[2] == "status" || parts[2] == "finalize");
  if (parts[0] == "namespaces" && parts.size() >= 3 && !own) {
    route.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  if (parts.size() > 3 && parts[2] == "proxy") {
    for (size_t i = 3; i < parts.size(); ++i) route.rest += "/" + base::UrlEncode(parts[i]);
    parts.resize(3);
  }
  if (parts.size() > 3) return NoSuchPath();
  route.info = rest_.registry().Find(group, version, parts[0]);
  if (route.info == nullptr) return NoSuchPath();
  if (!route.ns.empty() && !route.info->resource.namespaced) return NoSuchPath();
  if (parts.size() > 1) route.name = parts[1];
  if (parts.size() > 2) route.subresource = parts[2];
  route.verb = VerbOf(request, !route.name.empty());
  if (route.verb.empty()) {
    return MethodNotAllowed("the server does not allow this method on the requested resource");
  }
  const bool needs_ns = route.info->resource.namespaced && (!route.name.empty() || route.verb == "create");
  if (needs_ns && route.ns.empty()) {
    return BadRequest("an empty namespace may not be set when a resource name is provided");
  }
  return route;
}

absl::StatusOr<HttpResponse> Api::Serve(const Route& route, const HttpRequest& request) {
  const std::optional<Fault> fault = faults_.Take(route.verb, route.info->resource.plural);
  if (fault.has_value() && fault->kind == Fault::Kind::kDrop) {
    HttpResponse response;
    response.drop = true;
    return response;
  }
  if (fault.has_value() && fault->kind == Fault::Kind::kStatus) return StatusOf(*fault);
  auto response = ServeWell(route, request, fault);
  const bool slow = fault.has_value() && fault->kind == Fault::Kind::kSlowBody;
  if (slow && response.ok()) SlowDown(fault->delay, &*response);
  return response;
}

absl::StatusOr<HttpResponse> Api::ServeWell(const Route& route, const HttpRequest& request,
                                            std::optional<Fault> fault) {
  if (route.verb == "watch") return Watch(route, request, std::move(fault));
  if (route.name.empty()) {
    if (route.verb == "list") return List(route, request);
    if (route.verb == "create") return Create(route, request);
    return DeleteCollection(route, request);
  }
  return ServeObject(route, request);
}

absl::StatusOr<HttpResponse> Api::ServeObject(const Route& route, const HttpRequest& request) {
  const std::string& sub = route.subresource;
  const bool pod = route.info->builtin && route.info->resource.kind == "Pod";
  if (sub == "scale" && route.info->has_scale) return Scale(route, request);
  if (sub == "log" && pod && route.verb == "get") return Log(route, request);
  if (sub == "proxy" && pod && route.verb == "get") return Proxy(route);
  if (sub == "binding" && pod && route.verb == "create") return Bind(route, request);
  if (sub == "eviction" && pod && route.verb == "create") return Evict(route, request);
  if (!sub.empty() && !(sub == "status" && route.info->has_status)) return NoSuchPath();
  if (route.verb == "get") {
    MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr object, rest_.Get(*route.info, route.key()));
    return ObjectResponse(route, request, object->json(), rest_.clock().Now());
  }
  if (route.verb == "update") return Update(route, request);
  if (route.verb == "patch") return Patch(route, request);
  if (route.verb == "delete" && sub.empty()) return Delete(route, request);
  return MethodNotAllowed("the server does not allow this method on the requested resource");
}

}  // namespace medley::localcluster::apiserver

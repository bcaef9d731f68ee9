#include "scheduler-service/serve_rest/rest_service.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/host_port.h"
#include "common/base/status.h"
#include "common/metrics/process_metrics.h"
#include "common/metrics/text_page.h"
#include "scheduler-service/serve_rest/http_answer.h"
#include "scheduler-service/serve_rest/openapi.h"

namespace medley::sched {
namespace {

using http_server::HttpRequest;
using http_server::HttpResponse;

// Allows scripts, styles and calls from and to this service only: no other origins, no inline code, no frames.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr double kMaxTimeoutSeconds = 86400;

std::string MediaType(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  return type;
}

bool IsYaml(const std::string& type) {
  return type == "application/yaml" || type == "application/x-yaml" || type == "text/yaml";
}

absl::StatusOr<base::SteadyTime> Deadline(const std::string& seconds, base::SteadyTime now) {
  double value = 0;
  const auto [end, error] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
  if (error != std::errc() || end != seconds.data() + seconds.size() || !(value > 0 && value <= kMaxTimeoutSeconds)) {
    return base::InvalidArgument("Request-Timeout: must be seconds in (0, {}], is '{}'", kMaxTimeoutSeconds, seconds);
  }
  return now + base::FromSeconds(value);
}

bool LooksLikeJson(std::string_view body) {
  const size_t first = body.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (body[first] == '{' || body[first] == '[');
}

// Host and port of "https://example.com:8080"; empty when it is not of this form, such as "null".
std::string_view HostOfOrigin(std::string_view origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
}

// Ends the work on a call when the caller leaves or the service stops.
class Stops {
 public:
  Stops(std::stop_token caller_left, std::stop_token service_stops)
      : left_(std::move(caller_left), Request{source_}), stops_(std::move(service_stops), Request{source_}) {}
  std::stop_token token() const { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Request> left_, stops_;
};

}  // namespace

RestService::RestService(const RestOptions& options, RestContext context, std::function<void()> before_metrics)
    : options_(options),
      context_(std::move(context)),
      before_metrics_(std::move(before_metrics)),
      routes_(MakeRoutes(context_.handlers)),
      openapi_(MakeOpenApi(routes_)) {}

const Route* RestService::FindRoute(const std::string& path) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& r) { return r.path == path; });
  return found == routes_.end() ? nullptr : &*found;
}

const StaticFile* RestService::FindFile(const std::string& path) const {
  const auto found = std::find_if(context_.files.begin(), context_.files.end(),
                                  [&](const StaticFile& file) { return file.path == path; });
  return found == context_.files.end() ? nullptr : &*found;
}

bool RestService::IsOpen(const std::string& path) const {
  return std::find(options_.open_paths.begin(), options_.open_paths.end(), path) != options_.open_paths.end() ||
         FindFile(path) != nullptr;
}

bool RestService::IsOwnName(const std::string& host) const {
  const auto parts = base::SplitHostPort(host);
  std::string name = parts.ok() ? parts->host : host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') name = name.substr(1, name.size() - 2);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return base::IsLoopback(name) || name == options_.host ||
         std::find(options_.names.begin(), options_.names.end(), name) != options_.names.end();
}

std::optional<HttpResponse> RestService::Refuse(const HttpRequest& header) {
  Call call;
  call.id = context_.ids.Choose(header.request_id);
  const std::optional<Refusal> refusal = WhyRefused(header, call);
  if (!refusal) return std::nullopt;
  // A fixed label value, so that callers cannot create arbitrarily many metric series.
  context_.handlers.record().Answered("refused", call, refusal->status, 0);
  HttpResponse response = ErrorAnswer(refusal->status, refusal->code, refusal->field);
  if (!refusal->allow.empty()) response.headers.emplace_back("Allow", refusal->allow);
  response.headers.emplace_back("X-Request-Id", call.id);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

std::optional<RestService::Refusal> RestService::WhyRefused(const HttpRequest& header, Call& call) const {
  if (auto refusal = CheckCaller(header)) return refusal;
  const std::string& path = header.path;
  const Route* const route = FindRoute(path);
  const bool page = FindFile(path) != nullptr || path == "/healthz" || path == "/readyz" || path == "/metrics" ||
                    path == "/openapi.json";
  if (route == nullptr && !page) return Refusal{base::NotFound("no such path: {}", path)};
  const std::string method = route == nullptr ? "GET" : route->method;
  if (method != header.method) {
    return Refusal{
        base::MakeStatus(absl::StatusCode::kUnimplemented, fmt::format("{} is not served at {}", header.method, path)),
        405, "", method};
  }
  if (route != nullptr && !header.request_timeout.empty()) {
    const auto deadline = Deadline(header.request_timeout, context_.clock.Steady());
    if (!deadline.ok()) return Refusal{deadline.status(), 0, "Request-Timeout"};
    call.deadline = *deadline;
  }
  return method == "POST" ? CheckBody(header, options_.max_body_bytes) : std::nullopt;
}

std::optional<RestService::Refusal> RestService::CheckCaller(const HttpRequest& header) const {
  if (options_.tokens.required()) {
    if (IsOpen(header.path) || options_.tokens.Allow(header.authorization)) return std::nullopt;
    return Refusal{base::Unauthenticated("the request has no valid bearer token")};
  }
  if (!IsOwnName(header.host)) {
    return Refusal{base::MakeStatus(absl::StatusCode::kPermissionDenied,
                                    fmt::format("this service requires no token, so it answers only to its own names, "
                                                "not to '{}': allow the name with --rest-host, or set --token-file",
                                                header.host)),
                   421};
  }
  const bool changes = header.method != "GET" && header.method != "HEAD";
  if (changes && !header.origin.empty() && HostOfOrigin(header.origin) != header.host) {
    return Refusal{base::MakeStatus(
        absl::StatusCode::kPermissionDenied,
        fmt::format("Origin: pages of '{}' may not use this service, which requires no token", header.origin))};
  }
  return std::nullopt;
}

std::optional<RestService::Refusal> RestService::CheckBody(const HttpRequest& header, int64_t max_bytes) {
  const std::string type = MediaType(header.content_type);
  if (type != "application/json" && !IsYaml(type)) {
    return Refusal{base::InvalidArgument("Content-Type: must be application/json or application/yaml, is '{}'", type),
                   415, "Content-Type"};
  }
  if (header.chunked || !header.content_length) {
    return Refusal{base::InvalidArgument("Content-Length: is required, chunked bodies are not supported"), 411,
                   "Content-Length"};
  }
  if (*header.content_length < 0 || *header.content_length > max_bytes) {
    return Refusal{
        base::ResourceExhausted("the body has {} bytes, at most {} are allowed", *header.content_length, max_bytes),
        413};
  }
  return std::nullopt;
}

HttpResponse RestService::Answer(const HttpRequest& request) {
  Call call;
  call.id = context_.ids.Choose(request.request_id);
  call.tenant = options_.tokens.TenantOf(request.authorization);
  const Stops stops(request.stop, context_.stop);
  call.stop = stops.token();
  HttpResponse response;
  const Route* const route = FindRoute(request.path);
  if (const auto refusal = WhyRefused(request, call)) {  // sets the deadline; only a deadline can have passed meanwhile
    response = ErrorAnswer(refusal->status, refusal->code, refusal->field);
  } else if (route == nullptr) {
    response = Page(request.path);
  } else {
    response = Work(*route, request, call);
  }
  response.headers.emplace_back("X-Request-Id", call.id);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

HttpResponse RestService::Page(const std::string& path) const {
  HttpResponse answer;
  if (const StaticFile* const file = FindFile(path)) {
    answer = TextAnswer(200, std::string(file->bytes), file->type);
    answer.headers = {
        {"Content-Security-Policy", kPolicy}, {"Cache-Control", "no-cache"}, {"Referrer-Policy", "no-referrer"}};
  } else if (path == "/metrics") {
    if (before_metrics_) before_metrics_();
    metrics::TextPage process;
    metrics::WriteProcessMetrics(process);
    metrics::WriteBuildInfo(process, "scheduler");
    answer = TextAnswer(200, context_.metrics.Text() + process.Take(), metrics::kTextContentType);
  } else if (path == "/openapi.json") {
    answer = TextAnswer(200, openapi_, kJsonType);
  } else if (path == "/healthz" || context_.ready()) {
    answer = TextAnswer(200, "ok\n");
  } else {
    answer = TextAnswer(503, "not ready: the service has no prices yet, or it is stopping\n");
  }
  return answer;
}

HttpResponse RestService::Work(const Route& route, const HttpRequest& request, Call& call) {
  const base::SteadyTime start = context_.clock.Steady();
  std::string_view body = request.body;
  std::string kind, fields;
  if (route.method == "POST") {
    const bool yaml = IsYaml(MediaType(request.content_type));
    if (!yaml && !LooksLikeJson(body)) {
      return ErrorAnswer(base::InvalidArgument("the body is not JSON; send YAML with Content-Type application/yaml"));
    }
    kind = route.path + (yaml ? " yaml " : " json ") + call.tenant;
    call.input_version = context_.handlers.input_version();
    if (const auto kept = context_.handlers.cache().Find(kind, body, call.input_version)) {
      call.cached = true;
      context_.handlers.record().Answered(route.rpc, call, absl::OkStatus(),
                                          base::ToSeconds(context_.clock.Steady() - start));
      return TextAnswer(200, *kept, kJsonType);
    }
  } else {
    // For GET, the query parameters are the request.
    auto read = QueryToJson(request.query);
    if (!read.ok()) return ErrorAnswer(read.status());
    body = fields = *std::move(read);
  }
  std::string json;
  const absl::Status status = route.answer(body, call, json);
  if (!status.ok()) return ErrorAnswer(status);
  if (call.reproducible && !kind.empty()) context_.handlers.cache().Insert(kind, body, call.input_version, json);
  return TextAnswer(200, std::move(json), kJsonType);
}

}  // namespace medley::sched

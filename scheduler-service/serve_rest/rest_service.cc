#include "scheduler-service/serve_rest/rest_service.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "common/base/status.h"
#include "common/metrics/process_metrics.h"
#include "common/metrics/text_page.h"
#include "scheduler-service/serve_rest/openapi.h"

namespace medley::sched {
namespace {

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

}  // namespace

RestService::RestService(const RestOptions& options, RestContext context)
    : options_(options),
      context_(std::move(context)),
      routes_(MakeRoutes(context_.handlers)),
      openapi_(MakeOpenApi(routes_)) {}

bool RestService::IsOpen(const std::string& path) const {
  return std::find(options_.open_paths.begin(), options_.open_paths.end(), path) != options_.open_paths.end() ||
         std::any_of(context_.files.begin(), context_.files.end(), [&](const auto& file) { return file.path == path; });
}

std::unique_ptr<HttpAnswer> RestService::Refuse(const absl::Status& status, int code, std::string_view field,
                                                const Call& call) {
  // A fixed label value, so that callers cannot create arbitrarily many metric series.
  context_.handlers.record().Answered("refused", call, status, 0);
  return std::make_unique<HttpAnswer>(ErrorAnswer(status, code, field));
}

RestService::Begun RestService::Begin(const HttpRequest& request) {
  Begun begun;
  begun.call.id = context_.ids.Choose(request.request_id);
  begun.call.stop = context_.stop;
  if (!IsOpen(request.path) && !options_.tokens.Allow(request.authorization)) {
    begun.answer = Refuse(base::Unauthenticated("the request has no valid bearer token"), 0, "", begun.call);
  } else {
    begun.answer = Find(request, begun);
  }
  if (begun.answer != nullptr) {
    // The body will not be read, so the connection cannot be reused.
    begun.answer->close = request.chunked || request.length > 0;
  }
  return begun;
}

std::unique_ptr<HttpAnswer> RestService::Find(const HttpRequest& request, Begun& begun) {
  const auto route =
      std::find_if(routes_.begin(), routes_.end(), [&](const Route& r) { return r.path == request.path; });
  if (route == routes_.end()) return Page(request, begun.call);
  if (route->method != request.method) {
    auto answer = Refuse(base::MakeStatus(absl::StatusCode::kUnimplemented,
                                          fmt::format("{} is not served at {}", request.method, request.path)),
                         405, "", begun.call);
    answer->headers.emplace_back("Allow", route->method);
    return answer;
  }
  begun.route = &*route;
  if (!request.request_timeout.empty()) {
    const auto deadline = Deadline(request.request_timeout, context_.clock.Steady());
    if (!deadline.ok()) return Refuse(deadline.status(), 0, "Request-Timeout", begun.call);
    begun.call.deadline = *deadline;
  }
  if (route->method == "POST") {
    begun.kind = route->path + (IsYaml(MediaType(request.content_type)) ? " yaml" : " json");
    return RefuseBody(request, begun.call);
  }
  // For GET, the query parameters are the request.
  const auto json = QueryToJson(request.query);
  if (!json.ok()) return std::make_unique<HttpAnswer>(ErrorAnswer(json.status()));
  return std::make_unique<HttpAnswer>(Work(begun, *json));
}

std::unique_ptr<HttpAnswer> RestService::RefuseBody(const HttpRequest& request, const Call& call) {
  const std::string type = MediaType(request.content_type);
  if (type != "application/json" && !IsYaml(type)) {
    return Refuse(base::InvalidArgument("Content-Type: must be application/json or application/yaml, is '{}'", type),
                  415, "Content-Type", call);
  }
  if (request.chunked || !request.has_length) {
    return Refuse(base::InvalidArgument("Content-Length: is required, chunked bodies are not supported"), 411,
                  "Content-Length", call);
  }
  if (request.length > static_cast<uint64_t>(options_.max_body_bytes)) {
    return Refuse(base::ResourceExhausted("the body has {} bytes, at most {} are allowed", request.length,
                                          options_.max_body_bytes),
                  413, "", call);
  }
  return nullptr;
}

std::unique_ptr<HttpAnswer> RestService::Page(const HttpRequest& request, const Call& call) {
  const auto file = std::find_if(context_.files.begin(), context_.files.end(),
                                 [&](const StaticFile& f) { return f.path == request.path; });
  const std::string& path = request.path;
  const bool known = file != context_.files.end() || path == "/healthz" || path == "/readyz" || path == "/metrics" ||
                     path == "/openapi.json";
  if (!known) return Refuse(base::NotFound("no such path: {}", path), 0, "", call);
  if (request.method != "GET") {
    auto answer = Refuse(
        base::MakeStatus(absl::StatusCode::kUnimplemented, fmt::format("{} is not served at {}", request.method, path)),
        405, "", call);
    answer->headers.emplace_back("Allow", "GET");
    return answer;
  }
  HttpAnswer answer;
  if (file != context_.files.end()) {
    answer = TextAnswer(200, std::string(file->bytes), file->type);
    answer.headers = {
        {"Content-Security-Policy", kPolicy}, {"Cache-Control", "no-cache"}, {"Referrer-Policy", "no-referrer"}};
  } else if (path == "/metrics") {
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
  return std::make_unique<HttpAnswer>(std::move(answer));
}

std::unique_ptr<HttpAnswer> RestService::Cached(Begun& begun, std::string_view body) {
  const base::SteadyTime start = context_.clock.Steady();
  begun.call.input_version = context_.handlers.input_version();
  auto kept = context_.handlers.cache().Find(begun.kind, body, begun.call.input_version);
  if (kept == nullptr) return nullptr;
  begun.call.cached = true;
  context_.handlers.record().Answered(begun.route->rpc, begun.call, absl::OkStatus(),
                                      base::ToSeconds(context_.clock.Steady() - start));
  auto answer = std::make_unique<HttpAnswer>();
  answer->body = std::move(kept);
  return answer;
}

HttpAnswer RestService::Work(Begun& begun, const std::string& body) {
  HttpAnswer answer;
  std::string json;
  absl::Status status;
  if (begun.kind.ends_with(" json") && !LooksLikeJson(body)) {
    status = base::InvalidArgument("the body is not JSON; send YAML with Content-Type application/yaml");
  } else {
    status = begun.route->answer(body, begun.call, json);
  }
  if (!status.ok()) {
    answer = ErrorAnswer(status);
  } else {
    if (begun.call.reproducible && !begun.kind.empty()) {
      context_.handlers.cache().Insert(begun.kind, body, begun.call.input_version, json);
    }
    answer = TextAnswer(200, std::move(json), kJsonType);
  }
  return answer;
}

HttpAnswer RestService::Busy(Begun& begun) {
  const absl::Status status =
      base::ResourceExhausted("all {} request threads are busy: try again later", options_.work_threads);
  return *Refuse(status, 0, "", begun.call);
}

}  // namespace medley::sched

#include "kube/client/http_session.h"

#include "common/base/status.h"
#include "kube/errors.h"

namespace medley::kube {
namespace {

constexpr size_t kMaxIdle = 16;
constexpr std::chrono::hours kMaxRetryAfter{24};

bool IsLoopback(const std::string& server) {
  for (const char* host : {"://127.", "://localhost", "://[::1]"}) {
    if (server.find(host) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

// A kept-alive connection, which ends when what it proved its identity with is replaced.
struct HttpSession::Pooled {
  Pooled(http_client::Options options, uint64_t generation)
      : connection(std::move(options)), tls_generation(generation) {}
  http_client::Connection connection;
  const uint64_t tls_generation;
};

HttpSession::HttpSession(const ClientConfig& config, base::Clock& clock)
    : config_(config), base_(config.server), clock_(clock), credentials_(config, clock) {
  if (config.tls_server_name.empty()) return;
  // The URL bears the name to verify; the connection goes to the real host.
  const size_t begin = base_.find("://") + 3;
  const size_t end = std::min(base_.find('/', begin), base_.size());
  host_header_ = base_.substr(begin, end - begin);
  const size_t colon = host_header_.rfind(':');
  const bool has_port = colon != std::string::npos && host_header_.find(']', colon) == std::string::npos;
  const std::string port = has_port ? host_header_.substr(colon) : "";
  base_ = config.server.substr(0, begin) + config.tls_server_name + port + config.server.substr(end);
}

HttpSession::~HttpSession() = default;

http_client::Options HttpSession::OptionsFor(const Credentials::Snapshot& who) const {
  http_client::Options options;
  options.user_agent = config_.user_agent;
  options.connect_timeout = config_.connect_timeout;
  options.proxy = config_.proxy_url;
  options.proxy_of_environment = config_.proxy_url.empty() && !IsLoopback(config_.server);
  options.authorities = who.ca;
  options.certificate = who.certificate;
  options.key = who.key;
  options.insecure_skip_verify = config_.insecure_skip_tls_verify;
  if (!host_header_.empty()) {
    const size_t colon = host_header_.rfind(':');
    const bool has_port = colon != std::string::npos && host_header_.find(']', colon) == std::string::npos;
    options.connect_to = host_header_ + (has_port ? "" : ":");
  }
  options.probe_silent_peers = true;
  return options;
}

http_client::Request HttpSession::RequestFor(const HttpRequest& request, const Credentials::Snapshot& who) const {
  http_client::Request out;
  out.method = request.method;
  out.url = base_ + request.path;
  out.headers = {{"Accept", "application/json"}};
  if (!host_header_.empty()) out.headers.emplace_back("Host", host_header_);
  if (!who.token.empty()) out.headers.emplace_back("Authorization", "Bearer " + who.token);
  if (!request.body.empty()) {
    out.headers.emplace_back("Content-Type", request.content_type);
    out.body = request.body;
  }
  return out;
}

absl::Status HttpSession::ErrorOf(const http_client::Result& result, const std::string& what) const {
  return result.refused ? ConnectionRefused(what) : result.status;
}

std::unique_ptr<HttpSession::Pooled> HttpSession::Take(const Credentials::Snapshot& who) {
  std::vector<std::unique_ptr<Pooled>> old;  // closed without the lock
  base::MutexLock lock(mutex_);
  while (!idle_.empty()) {
    std::unique_ptr<Pooled> connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->tls_generation == who.tls_generation) return connection;
    old.push_back(std::move(connection));
  }
  return std::make_unique<Pooled>(OptionsFor(who), who.tls_generation);
}

void HttpSession::Give(std::unique_ptr<Pooled> connection) {
  base::MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connection));
}

template <typename Try>
absl::StatusOr<HttpResponse> HttpSession::WithCredentials(const Try& once) {
  const auto who = credentials_.Current();
  absl::StatusOr<HttpResponse> response = once(*who);
  const bool refused = response.ok() ? response->code == 401 : absl::IsFailedPrecondition(response.status());
  if (!refused || !credentials_.Renew(*who)) return response;
  return once(*credentials_.Current());
}

absl::StatusOr<HttpResponse> HttpSession::Exchange(const HttpRequest& request, const std::string& what,
                                                   std::stop_token stop) {
  return WithCredentials([&](const Credentials::Snapshot& who) { return ExchangeOnce(request, what, stop, who); });
}

absl::StatusOr<HttpResponse> HttpSession::ExchangeOnce(const HttpRequest& request, const std::string& what,
                                                       std::stop_token stop, const Credentials::Snapshot& who) {
  std::unique_ptr<Pooled> pooled = Take(who);
  http_client::Request out = RequestFor(request, who);
  out.timeout = config_.request_timeout;
  http_client::Result result = pooled->connection.Run(out, what, stop);
  if (!result.status.ok()) return ErrorOf(result, what);
  Give(std::move(pooled));
  const auto retry_after = result.response.RetryAfter(clock_, kMaxRetryAfter);
  return HttpResponse{result.response.code, std::move(result.response.body), retry_after};
}

absl::StatusOr<HttpResponse> HttpSession::Stream(const std::string& path, const std::string& what,
                                                 std::chrono::milliseconds timeout, std::stop_token stop,
                                                 const std::function<bool(std::string_view)>& on_bytes) {
  return WithCredentials(
      [&](const Credentials::Snapshot& who) { return StreamOnce(path, what, timeout, stop, on_bytes, who); });
}

absl::StatusOr<HttpResponse> HttpSession::StreamOnce(const std::string& path, const std::string& what,
                                                     std::chrono::milliseconds timeout, std::stop_token stop,
                                                     const std::function<bool(std::string_view)>& on_bytes,
                                                     const Credentials::Snapshot& who) {
  std::unique_ptr<Pooled> pooled = Take(who);
  http_client::Request out = RequestFor({.path = path}, who);
  out.timeout = timeout;
  out.first_byte_timeout = config_.request_timeout;
  http_client::Result result = pooled->connection.Run(
      out, what, stop, [&](std::string_view bytes) { return !stop.stop_requested() && on_bytes(bytes); });
  const auto retry_after = result.response.RetryAfter(clock_, kMaxRetryAfter);
  HttpResponse response{result.response.code, std::move(result.response.body), retry_after};
  if (stop.stop_requested() || result.ended_by_sink) {
    response.code = 200;
    return response;
  }
  if (!result.status.ok()) {
    // A timeout after the 200 is our own end of a watch that the server should have ended.
    if (absl::IsDeadlineExceeded(result.status) && response.code == 200) return response;
    return response.code == 200 ? StreamCut(what) : ErrorOf(result, what);
  }
  Give(std::move(pooled));
  return response;
}

}  // namespace medley::kube

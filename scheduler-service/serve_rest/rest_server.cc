#include "scheduler-service/serve_rest/rest_server.h"

#include <arpa/inet.h>
#include <cpprest/http_listener.h>
#include <netinet/in.h>
#include <pplx/threadpool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/model/convert.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;
using web::http::http_request;
using web::http::http_response;
using web::http::status_code;
using web::http::status_codes;
using web::http::experimental::listener::http_listener;

constexpr char kJson[] = "application/json";

status_code HttpCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return status_codes::OK;
    case absl::StatusCode::kInvalidArgument: return status_codes::BadRequest;
    case absl::StatusCode::kNotFound: return status_codes::NotFound;
    case absl::StatusCode::kResourceExhausted: return 429;
    case absl::StatusCode::kDeadlineExceeded: return status_codes::GatewayTimeout;
    case absl::StatusCode::kUnavailable: return status_codes::ServiceUnavailable;
    default: return status_codes::InternalError;
  }
}

struct Answer {
  status_code code = status_codes::OK;
  std::string body;
  std::string type = kJson;
};

std::string Quoted(const std::string& text) {
  // A message of ours is never long; the JSON of a Reason escapes it as protobuf does everywhere else.
  pb::Reason holder;
  holder.set_message(text);
  const std::string json = model::ToJson(holder);
  const size_t begin = json.find("\"message\":") + 10;
  return json.substr(begin, json.rfind('}') - begin);
}

Answer ErrorAnswer(status_code code, const std::string& name, const std::string& message) {
  return {code, fmt::format(R"({{"code":"{}","message":{}}})", name, Quoted(message)), kJson};
}

Answer ToAnswer(const absl::Status& status, const google::protobuf::Message& message) {
  if (status.ok()) return {status_codes::OK, model::ToJson(message), kJson};
  return ErrorAnswer(HttpCode(status.code()), std::string(absl::StatusCodeToString(status.code())),
                     base::Message(status));
}

// A socket that holds `options`' address for a moment: tells whether it is free, and finds a port when 0 is asked for.
// The library can do neither: it neither reports the port that it was given nor distinguishes its errors.
absl::StatusOr<int> ProbePort(const RestOptions& options) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  const std::string host = options.host == "localhost" ? "127.0.0.1" : options.host;
  if (options.port < 0 || options.port > 65535 || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return base::InvalidArgument("{}:{} is not an IPv4 address and port to listen on", options.host, options.port);
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "opening a socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  close(fd);
  if (!bound) return base::ErrnoStatus(error, fmt::format("listening on {}:{}", options.host, options.port));
  return ntohs(address.sin_port);
}

class Impl final : public RestServer {
 public:
  Impl(RestOptions options, Handlers& handlers, const metrics::Registry& metrics, std::function<bool()> ready,
       std::stop_token stop)
      : options_(std::move(options)), handlers_(handlers), metrics_(metrics), ready_(std::move(ready)), stop_(stop) {}

  ~Impl() override {
    if (listener_ == nullptr) return;
    try {
      listener_->close().wait();
    } catch (const std::exception&) {
      // It was not open any more; nothing is left to release.
    }
    // Answers that wait for a body or run on the pool still use this object.
    base::MutexLock lock(mutex_);
    idle_.WaitFor(mutex_, {}, base::seconds(30), [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ == 0; });
  }

  int port() const override { return port_; }

  absl::Status Open(int port) {
    web::uri_builder uri;
    uri.set_scheme("http").set_host(options_.host).set_port(port);
    listener_ = std::make_unique<http_listener>(uri.to_uri());
    listener_->support([this](http_request request) { Serve(std::move(request)); });
    try {
      listener_->open().wait();
    } catch (const std::exception& error) {
      listener_.reset();
      return base::AlreadyExists("listening on {}:{}: {}", options_.host, port, error.what());
    }
    port_ = port;
    return absl::OkStatus();
  }

 private:
  void Serve(http_request request) {
    {
      base::MutexLock lock(mutex_);
      ++running_;
    }
    const std::string method = request.method();
    const std::string path = request.relative_uri().path();
    if (method == "POST" && IsPost(path)) {
      ServePost(path, std::move(request));
    } else {
      Reply(request, ServeGet(method, path));
    }
  }

  static bool IsPost(const std::string& path) {
    return path == "/v1/plan" || path == "/v1/provision" || path == "/v1/evaluate";
  }

  void ServePost(const std::string& path, http_request request) {
    if (!request.headers().has("Content-Length")) {
      return Reply(request, ErrorAnswer(status_codes::LengthRequired, "INVALID_ARGUMENT", "Content-Length is needed"));
    }
    const auto length = request.headers().content_length();
    if (length > static_cast<utility::size64_t>(options_.max_body_bytes)) {
      return Reply(request, ErrorAnswer(status_codes::RequestEntityTooLarge, "RESOURCE_EXHAUSTED",
                                        fmt::format("the body is larger than {} bytes", options_.max_body_bytes)));
    }
    // Not blocking: the pool is small, and a slow client must not hold one of its threads.
    request.extract_vector().then([this, path, request](pplx::task<std::vector<unsigned char>> task) {
      std::string body;
      try {
        const std::vector<unsigned char> bytes = task.get();
        body.assign(bytes.begin(), bytes.end());
      } catch (const std::exception&) {
        return Done();  // the client went away
      }
      Reply(request, Post(path, body));
    });
  }

  Answer Post(const std::string& path, const std::string& body) {
    if (path == "/v1/plan") {
      return Call<pb::PlanRequest, pb::PlanResponse>(body, [&](const auto& in, auto& out) {
        return handlers_.Plan(in, {.stop = stop_}, out);
      });
    }
    if (path == "/v1/provision") {
      return Call<pb::ProvisionRequest, pb::ProvisionResponse>(
          body, [&](const auto& in, auto& out) { return handlers_.Provision(in, out); });
    }
    return Call<pb::EvaluateRequest, pb::EvaluateResponse>(
        body, [&](const auto& in, auto& out) { return handlers_.Evaluate(in, out); });
  }

  template <typename In, typename Out, typename Handler>
  static Answer Call(const std::string& body, Handler handler) {
    In in;
    Out out;
    absl::Status status = model::ParseText(body, in);
    if (status.ok()) status = handler(in, out);
    return ToAnswer(status, out);
  }

  Answer ServeGet(const std::string& method, const std::string& path) {
    const bool known = path == "/v1/planners" || path == "/v1/catalog" || path == "/healthz" || path == "/readyz" ||
                       path == "/metrics";
    if (!known && !IsPost(path)) return ErrorAnswer(status_codes::NotFound, "NOT_FOUND", "no such path: " + path);
    if (!known || method != "GET") {
      return ErrorAnswer(status_codes::MethodNotAllowed, "UNIMPLEMENTED", method + " is not served at " + path);
    }
    if (path == "/healthz") return {status_codes::OK, "ok\n", "text/plain"};
    if (path == "/readyz") {
      if (ready_()) return {status_codes::OK, "ok\n", "text/plain"};
      return {status_codes::ServiceUnavailable, "no prices yet\n", "text/plain"};
    }
    if (path == "/metrics") return {status_codes::OK, metrics_.Text(), metrics::kTextContentType};
    if (path == "/v1/planners") {
      pb::ListPlannersResponse out;
      handlers_.ListPlanners(out);
      return ToAnswer(absl::OkStatus(), out);
    }
    pb::GetCatalogResponse out;
    handlers_.GetCatalog(out);
    return ToAnswer(absl::OkStatus(), out);
  }

  void Reply(const http_request& request, const Answer& answer) {
    http_response response(answer.code);
    response.set_body(answer.body, answer.type);
    request.reply(response).then([this](pplx::task<void> task) {
      try {
        task.get();
      } catch (const std::exception&) {
        // The client did not wait for its answer.
      }
      Done();
    });
  }

  void Done() {
    base::MutexLock lock(mutex_);
    --running_;
    idle_.NotifyAll();
  }

  const RestOptions options_;
  Handlers& handlers_;
  const metrics::Registry& metrics_;
  const std::function<bool()> ready_;
  const std::stop_token stop_;
  std::unique_ptr<http_listener> listener_;
  int port_ = 0;
  base::Mutex mutex_;
  base::CondVar idle_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // requests that have not been answered to the end
};

}  // namespace

void UseRestThreads(int threads) { crossplat::threadpool::initialize_with_threads(static_cast<size_t>(threads)); }

absl::StatusOr<std::unique_ptr<RestServer>> RestServer::Start(const RestOptions& options, Handlers& handlers,
                                                              const metrics::Registry& metrics,
                                                              std::function<bool()> ready, std::stop_token stop) {
  auto server = std::make_unique<Impl>(options, handlers, metrics, std::move(ready), std::move(stop));
  absl::Status status;
  // Between the probe and the listener somebody may take a port that the system chose: try another one.
  for (int attempt = 0; attempt < (options.port == 0 ? 10 : 1); ++attempt) {
    MEDLEY_ASSIGN_OR_RETURN(const int port, ProbePort(options));
    status = server->Open(port);
    if (status.ok()) return server;
  }
  return status;
}

}  // namespace medley::sched

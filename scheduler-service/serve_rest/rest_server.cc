// cpprestsdk's listener in front of RestService.
//
// Properties of the library (2.10.18) that shape this code: a handler runs when the headers have arrived, while the
// library still reads the body into memory without a limit, and it sends a response only when the body is complete. So
// if the service rejects a request by its headers, `Discard` declares the body complete; then the library sends the
// response at once, and the connection is closed. This is safe only with one network thread (network_thread.h).
#include "scheduler-service/serve_rest/rest_server.h"

#include <cpprest/http_listener.h>

#include <atomic>
#include <exception>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "scheduler-service/serve_rest/connection_guard.h"
#include "scheduler-service/serve_rest/listen_port.h"
#include "scheduler-service/serve_rest/network_thread.h"
#include "scheduler-service/serve_rest/rest_service.h"
#include "scheduler-service/serve_rest/work_pool.h"

namespace medley::sched {
namespace {

using web::http::http_request;
using web::http::http_response;
using web::http::status_code;
using web::http::experimental::listener::http_listener;
using web::http::experimental::listener::http_listener_config;

// Bytes of a request besides its body: headers, and the overhead of TLS.
constexpr uint64_t kBytesBesideBody = uint64_t{256} << 10;
constexpr base::seconds kLastAnswers{30};

std::string Header(const http_request& request, const std::string& name) {
  const auto found = request.headers().find(name);
  return found == request.headers().end() ? std::string() : found->second;
}

HttpRequest Read(const http_request& request) {
  HttpRequest out;
  out.method = request.method();
  out.path = request.relative_uri().path();
  out.query = request.relative_uri().query();
  out.content_type = Header(request, "Content-Type");
  out.authorization = Header(request, "Authorization");
  out.request_id = Header(request, "X-Request-Id");
  out.request_timeout = Header(request, "Request-Timeout");
  out.chunked = request.headers().has("Transfer-Encoding");
  out.has_length = request.headers().has("Content-Length");
  if (out.has_length) out.length = request.headers().content_length();
  return out;
}

void Discard(const http_request& request) {
  const auto impl = request._get_impl();
  impl->_complete(0, std::make_exception_ptr(web::http::http_exception("the body is not wanted")));
}

class Server final : public RestServer {
 public:
  Server(const RestOptions& options, const RestContext& context)
      : options_(options), context_(context), service_(options, context), pool_(options.work_threads) {}

  ~Server() override {
    closing_ = true;
    guard_.reset();
    if (listener_ == nullptr) return;
    network_.BeginClosing();
    try {
      listener_->close().wait();
    } catch (const std::exception&) {
      // The listener was not open, so there is nothing to release.
    }
    // Requests that wait for a body or run on the pool still use this object.
    WaitAnswered(kLastAnswers);
  }

  bool WaitAnswered(base::nanoseconds timeout) override {
    base::MutexLock lock(mutex_);
    return idle_.WaitFor(mutex_, {}, timeout, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return answering_ == 0; });
  }

  int port() const override { return port_; }
  int answering() const override {
    base::MutexLock lock(mutex_);
    return answering_;
  }

  absl::Status Open() {
    if (options_.tls) {
      MEDLEY_ASSIGN_OR_RETURN(tls_, TlsFiles::Load(*options_.tls, context_.clock));
    }
    absl::Status status;
    // Another process may take the port between the probe and Listen. If the system chose the port, try another one.
    for (int attempt = 0; attempt < (options_.port == 0 ? 10 : 1); ++attempt) {
      MEDLEY_ASSIGN_OR_RETURN(const int port, ProbePort(options_.host, options_.port));
      status = Listen(port);
      if (status.ok()) break;
    }
    MEDLEY_RETURN_IF_ERROR(status);
    ConnectionGuard::Options guard;
    guard.port = port_;
    guard.idle = options_.idle;
    guard.receive = options_.receive;
    guard.max_connections = options_.max_connections;
    guard.max_unanswered_bytes = static_cast<uint64_t>(options_.max_body_bytes) * 11 / 10 + kBytesBesideBody;
    guard_ = std::make_unique<ConnectionGuard>(
        guard, [this] { return answering(); }, context_.metrics, context_.clock);
    return absl::OkStatus();
  }

 private:
  absl::Status Listen(int port) {
    web::uri_builder uri;
    uri.set_scheme(tls_ ? "https" : "http").set_host(options_.host).set_port(port);
    http_listener_config config;
    if (tls_) config.set_ssl_context_callback([this](boost::asio::ssl::context& ssl) { tls_->Apply(ssl); });
    listener_ = std::make_unique<http_listener>(uri.to_uri(), config);
    listener_->support([this](http_request request) { Serve(std::move(request)); });
    try {
      listener_->open().wait();
    } catch (const std::exception& error) {
      listener_.reset();
      return base::AlreadyExists("listening on {}: {}", base::JoinHostPort(options_.host, port), error.what());
    }
    port_ = port;
    return absl::OkStatus();
  }

  void Serve(http_request request) {
    {
      base::MutexLock lock(mutex_);
      ++answering_;
    }
    const auto begun = std::make_shared<RestService::Begun>(service_.Begin(Read(request)));
    if (begun->answer != nullptr) return Reply(request, *begun, *begun->answer);
    // Read the body asynchronously, so that a slow client does not block the network thread.
    request.extract_vector().then([this, begun, request](pplx::task<std::vector<unsigned char>> task) {
      auto body = std::make_shared<std::string>();
      try {
        const std::vector<unsigned char> bytes = task.get();
        body->assign(bytes.begin(), bytes.end());
      } catch (const std::exception&) {
        return Done();  // the client disconnected
      }
      if (const auto kept = service_.Cached(*begun, *body)) return Reply(request, *begun, *kept);
      const bool taken =
          pool_.TryRun([this, begun, request, body] { Reply(request, *begun, service_.Work(*begun, *body)); });
      if (!taken) Reply(request, *begun, service_.Busy(*begun));
    });
  }

  void Reply(const http_request& request, const RestService::Begun& begun, const HttpAnswer& answer) {
    http_response response(static_cast<status_code>(answer.code));
    response.set_body(*answer.body, answer.type);
    for (const auto& [name, value] : answer.headers) response.headers().add(name, value);
    response.headers().add("X-Request-Id", begun.call.id);
    response.headers().add("X-Content-Type-Options", "nosniff");
    if (answer.close) response.headers().add("Connection", "close");
    if (answer.code == 499) response.set_reason_phrase("Client Closed Request");
    request.reply(response).then([this](pplx::task<void> task) {
      try {
        task.get();
      } catch (const std::exception&) {
        // The client disconnected before the response was sent.
      }
      Done();
    });
    if (answer.close && !closing_) Discard(request);
  }

  void Done() {
    base::MutexLock lock(mutex_);
    --answering_;
    idle_.NotifyAll();
  }

  const RestOptions options_;
  const RestContext context_;
  RestService service_;
  NetworkThread network_;
  std::atomic<bool> closing_ = false;
  std::unique_ptr<TlsFiles> tls_;
  std::unique_ptr<http_listener> listener_;
  int port_ = 0;
  mutable base::Mutex mutex_;
  base::CondVar idle_;
  int answering_ ABSL_GUARDED_BY(mutex_) = 0;
  WorkPool pool_;
  std::unique_ptr<ConnectionGuard> guard_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RestServer>> RestServer::Start(const RestOptions& options, RestContext context) {
  auto server = std::make_unique<Server>(options, context);
  MEDLEY_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace medley::sched

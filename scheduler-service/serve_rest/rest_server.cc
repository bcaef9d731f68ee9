// common/http_server in front of RestService.
#include "scheduler-service/serve_rest/rest_server.h"

#include <utility>

#include "common/base/host_port.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/http_server/server.h"
#include "scheduler-service/serve_rest/http_answer.h"
#include "scheduler-service/serve_rest/rest_service.h"

namespace medley::sched {
namespace {

using http_server::HttpRequest;
using http_server::HttpResponse;

// Headers and bodies of all requests that are read or answered.
constexpr int64_t kRequestMemory = int64_t{32} << 20;
constexpr base::seconds kLastAnswers{30};

// The response to a request that the HTTP server itself refuses.
HttpResponse RefusedByServer(int code, const std::string& message) {
  const absl::StatusCode status = code == 400   ? absl::StatusCode::kInvalidArgument
                                  : code == 500 ? absl::StatusCode::kInternal
                                  : code == 503 ? absl::StatusCode::kUnavailable
                                                : absl::StatusCode::kResourceExhausted;
  return ErrorAnswer(base::MakeStatus(status, message), code, "");
}

class Server final : public RestServer {
 public:
  Server(const RestOptions& options, const RestContext& context)
      : options_(options),
        metrics_(context.metrics),
        open_(context.metrics.GetGauge("medley_rest_connections", "Open connections to the REST port")),
        service_(options, context, [this] { open_.Set(static_cast<double>(http_.open())); }),
        http_(ServerOptions(), [this](const HttpRequest& request) { return service_.Answer(request); }) {}

  ~Server() override {
    WaitAnswered(kLastAnswers);
    http_.Stop();
  }

  bool WaitAnswered(base::nanoseconds timeout) override { return http_.WaitAnswered(timeout); }
  int port() const override { return http_.port(); }
  int answering() const override { return http_.answering(); }

  absl::Status Open() {
    const absl::Status status = http_.Start();
    if (!absl::IsUnavailable(status)) return status;
    return base::AlreadyExists("{}", base::Message(status));
  }

 private:
  http_server::HttpServer::Options ServerOptions() {
    http_server::HttpServer::Options out{.address = options_.host,
                                         .port = options_.port,
                                         .max_connections = options_.max_connections,
                                         .max_body = options_.max_body_bytes,
                                         .max_request_memory = kRequestMemory,
                                         .header_timeout = options_.receive,
                                         .idle_timeout = options_.idle,
                                         .transfer_timeout = options_.receive};
    if (options_.tls) {
      out.certificate = options_.tls->certificate;
      out.key = options_.tls->key;
      out.client_ca = options_.tls->client_ca;
      out.require_client_certificate = true;
    }
    out.admit = [this](const HttpRequest& header) { return service_.Refuse(header); };
    out.ended = [this](const char* reason) {
      metrics_
          .GetCounter("medley_rest_connections_ended_total", "Connections that did not end properly, by reason",
                      {{"reason", reason}})
          .Increment();
      base::log::Debug("a connection ended", {{"reason", reason}});
    };
    out.refuse = RefusedByServer;
    return out;
  }

  const RestOptions options_;
  metrics::Registry& metrics_;
  metrics::Gauge& open_;
  RestService service_;
  http_server::HttpServer http_;  // last: its threads use the rest
};

}  // namespace

absl::StatusOr<std::unique_ptr<RestServer>> RestServer::Start(const RestOptions& options, RestContext context) {
  auto server = std::make_unique<Server>(options, context);
  MEDLEY_RETURN_IF_ERROR(server->Open());
  return server;
}

}  // namespace medley::sched

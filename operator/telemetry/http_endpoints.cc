#include "operator/telemetry/http_endpoints.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <optional>
#include <thread>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/metrics/metrics.h"

namespace medley::ops {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

constexpr std::chrono::seconds kPatience{5};

Response Answer(const Request& request, http::status status, std::string body, const char* type = "text/plain") {
  Response response(status, request.version());
  response.set(http::field::content_type, type);
  response.keep_alive(false);
  response.body() = std::move(body);
  response.prepare_payload();
  return response;
}

Response Check(const Request& request, const std::function<absl::Status()>& check) {
  const absl::Status status = check();
  if (status.ok()) return Answer(request, http::status::ok, "ok\n");
  return Answer(request, http::status::service_unavailable, base::ToString(status) + "\n");
}

Response Route(const Request& request, const HttpEndpoints::Sources& sources) {
  if (request.method() != http::verb::get) return Answer(request, http::status::method_not_allowed, "GET only\n");
  const std::string target(request.target());
  if (target == "/metrics") return Answer(request, http::status::ok, sources.metrics(), metrics::kTextContentType);
  if (target == "/healthz" || target == "/livez") return Check(request, sources.healthy);
  if (target == "/readyz") return Check(request, sources.ready);
  return Answer(request, http::status::not_found, "not found\n");
}

}  // namespace

class HttpEndpoints::Server {
 public:
  Server(asio::ip::tcp::endpoint endpoint, const Sources& sources) : sources_(sources), acceptor_(io_, endpoint) {
    Accept();
    thread_ = std::jthread([this] { io_.run(); });
  }
  ~Server() {
    io_.stop();
    thread_.join();
  }
  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  // One connection: read, answer, close. Lives until its last handler has run.
  struct Session : std::enable_shared_from_this<Session> {
    explicit Session(asio::ip::tcp::socket socket) : stream(std::move(socket)) {}
    void Run(const Sources& sources) {
      parser.header_limit(8192);
      stream.expires_after(kPatience);
      http::async_read(stream, buffer, parser, [self = shared_from_this(), &sources](beast::error_code error, size_t) {
        if (!error) self->Reply(sources);
      });
    }
    void Reply(const Sources& sources) {
      response = Route(parser.get(), sources);
      stream.expires_after(kPatience);
      http::async_write(stream, response, [self = shared_from_this()](beast::error_code, size_t) {
        beast::error_code ignored;
        self->stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      });
    }
    beast::tcp_stream stream;
    beast::flat_buffer buffer{16384};
    http::request_parser<http::empty_body> parser;
    Response response;
  };

  void Accept() {
    acceptor_.async_accept([this](beast::error_code error, asio::ip::tcp::socket socket) {
      if (!error) std::make_shared<Session>(std::move(socket))->Run(sources_);
      if (error != asio::error::operation_aborted) Accept();
    });
  }

  const Sources& sources_;
  asio::io_context io_{1};
  asio::ip::tcp::acceptor acceptor_;
  std::jthread thread_;
};

HttpEndpoints::HttpEndpoints(Options options, Sources sources)
    : options_(std::move(options)), sources_(std::move(sources)) {}

HttpEndpoints::~HttpEndpoints() { Stop(); }

absl::Status HttpEndpoints::Start() {
  beast::error_code error;
  const asio::ip::address address = asio::ip::make_address(options_.address, error);
  if (error) return base::InvalidArgument("listen on {}: {}", options_.address, error.message());
  try {
    server_ = std::make_unique<Server>(asio::ip::tcp::endpoint(address, static_cast<unsigned short>(options_.port)),
                                       sources_);
  } catch (const boost::system::system_error& failure) {
    return base::Unavailable("listen on {}:{}: {}", options_.address, options_.port, failure.what());
  }
  return absl::OkStatus();
}

void HttpEndpoints::Stop() { server_.reset(); }

int HttpEndpoints::port() const { return server_ == nullptr ? 0 : server_->port(); }

}  // namespace medley::ops

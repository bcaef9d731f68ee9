#include "localcluster/apiserver/connection.h"

#include <sys/socket.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <optional>

#include "common/base/log.h"
#include "common/base/status.h"
#include "localcluster/apiserver/api_error.h"

namespace medley::kube::apiserver {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds kIdle(300);
constexpr std::chrono::seconds kTransfer(60);  // one request's body, or one write

std::string Text(beast::string_view view) { return std::string(view.data(), view.size()); }

HttpResponse ErrorResponse(const absl::Status& status) {
  HttpResponse response;
  response.code = HttpCodeOf(status);
  response.body = StatusObject(status).dump();
  return response;
}

template <typename Stream>
class Connection {
 public:
  Connection(Stream& stream, tcp::socket& socket, const ConnectionContext& context, std::string client_name,
             std::stop_token stop)
      : stream_(stream),
        socket_(socket),
        context_(context),
        client_name_(std::move(client_name)),
        stop_(std::move(stop)) {}

  void Run() {
    while (!stop_.stop_requested() && One()) {
    }
    context_.deadline->In(kTransfer);
  }

 private:
  class Sink final : public BodySink {
   public:
    explicit Sink(Connection& c) : c_(c) {}
    bool Write(std::string_view bytes) override {
      if (bytes.empty()) return ok_;
      char size[32];
      const int n = std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
      const std::array<asio::const_buffer, 3> parts = {asio::buffer(size, static_cast<size_t>(n)),
                                                       asio::buffer(bytes.data(), bytes.size()),
                                                       asio::buffer("\r\n", 2)};
      ok_ = ok_ && c_.Send(parts);
      return ok_;
    }
    bool Alive() override {
      char byte;
      const ssize_t n = ::recv(c_.socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      ok_ = ok_ && (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)));
      return ok_;
    }
    void Abort() override { ok_ = false; }

   private:
    Connection& c_;
    bool ok_ = true;
  };

  template <typename Buffers>
  bool Send(const Buffers& buffers) {
    boost::system::error_code error;
    context_.deadline->In(kTransfer);
    asio::write(stream_, buffers, error);
    context_.deadline->Never();
    return !error;
  }

  // One request and its answer; false when the connection is done.
  bool One() {
    http::request_parser<http::string_body> parser;
    parser.body_limit(static_cast<uint64_t>(context_.max_body));
    parser.header_limit(64 * 1024);
    boost::system::error_code error;
    context_.deadline->In(kIdle);
    http::read_header(stream_, buffer_, parser, error);
    if (!error && Text(parser.get()[http::field::expect]) == "100-continue") {
      static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
      if (!Send(asio::buffer(kContinue, sizeof(kContinue) - 1))) return false;
    }
    if (!error) {
      context_.deadline->In(kTransfer);
      http::read(stream_, buffer_, parser, error);
    }
    context_.deadline->Never();
    if (error == http::error::body_limit) {
      Answer(ErrorResponse(ApiError(413, "RequestEntityTooLarge", "Request entity too large")), false);
      return false;
    }
    if (error) return false;
    HttpRequest request;
    const bool parsed = Convert(parser.release(), &request);
    HttpResponse response = parsed ? Handle(request) : ErrorResponse(BadRequest("the request line is malformed"));
    if (response.drop) return false;
    return Answer(response, keep_alive_) && keep_alive_;
  }

  HttpResponse Handle(const HttpRequest& request) {
    try {
      return (*context_.handler)(request);
    } catch (const std::exception& e) {
      log::Warn("embedded API server: request failed", {{"path", request.path}, {"error", e.what()}});
      return ErrorResponse(ApiError(500, "InternalError", "the server met an unexpected value"));
    }
  }

  bool Convert(http::request<http::string_body> in, HttpRequest* out) {
    keep_alive_ = in.keep_alive();
    out->method = Text(in.method_string());
    out->accept = Text(in[http::field::accept]);
    out->content_type = Text(in[http::field::content_type]);
    out->authorization = Text(in[http::field::authorization]);
    out->user_agent = Text(in[http::field::user_agent]);
    out->client_name = client_name_;
    const std::string target = Text(in.target());
    out->body = std::move(in.body());
    return ParseTarget(target, out);
  }

  bool Answer(const HttpResponse& response, bool keep_alive) {
    http::response<http::empty_body> head;
    head.version(11);
    head.result(static_cast<unsigned>(response.code));
    head.set(http::field::content_type, response.content_type);
    head.set(http::field::cache_control, "no-cache, private");
    for (const auto& [name, value] : response.headers) head.insert(name, value);
    head.keep_alive(keep_alive);
    if (response.stream) {
      head.set(http::field::transfer_encoding, "chunked");
    } else {
      head.content_length(response.body.size());
    }
    std::string text;
    {
      std::ostringstream out;
      out << head.base();
      text = out.str();
    }
    if (!response.stream) {
      const std::array<asio::const_buffer, 2> parts = {asio::buffer(text), asio::buffer(response.body)};
      return Send(parts);
    }
    if (!Send(asio::buffer(text))) return false;
    Sink sink(*this);
    try {
      response.stream(sink, stop_);
    } catch (const std::exception& e) {
      log::Warn("embedded API server: stream failed", {{"error", e.what()}});
      return false;
    }
    return sink.Alive() && Send(asio::buffer("0\r\n\r\n", 5));
  }

  Stream& stream_;
  tcp::socket& socket_;
  const ConnectionContext& context_;
  const std::string client_name_;
  const std::stop_token stop_;
  beast::flat_buffer buffer_;
  bool keep_alive_ = true;
};

std::string PeerName(SSL* ssl) {
  X509* certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) return "";
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

}  // namespace

void ServeConnection(tcp::socket& socket, asio::ssl::context* tls, const ConnectionContext& context,
                     std::stop_token stop) {
  try {
    if (tls == nullptr) {
      Connection<tcp::socket>(socket, socket, context, "", stop).Run();
      return;
    }
    asio::ssl::stream<tcp::socket&> stream(socket, *tls);
    boost::system::error_code error;
    context.deadline->In(kTransfer);
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error) return;
    using Tls = asio::ssl::stream<tcp::socket&>;
    Connection<Tls>(stream, socket, context, PeerName(stream.native_handle()), stop).Run();
    stream.shutdown(error);
  } catch (const std::exception& e) {
    log::Warn("embedded API server: connection failed", {{"error", e.what()}});
  }
}

}  // namespace medley::kube::apiserver

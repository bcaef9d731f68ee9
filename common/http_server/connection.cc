#include "common/http_server/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <limits>

#include "common/base/log.h"

namespace medley::http_server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Parser = http::request_parser<http::string_body>;

constexpr size_t kReadBytes = 4096;
constexpr int64_t kDiscardedBytes = int64_t{1} << 20;
constexpr std::chrono::milliseconds kDiscardTime{1000};

std::string Text(beast::string_view view) { return std::string(view.data(), view.size()); }

// What a connection has taken of the shared budget; given back with it.
class Share {
 public:
  explicit Share(Budget& budget) : budget_(budget) {}
  ~Share() { budget_.Give(taken_); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  bool GrowTo(int64_t bytes) {
    if (bytes <= taken_) return true;
    if (!budget_.Take(bytes - taken_, bytes)) return false;
    taken_ = bytes;
    return true;
  }

 private:
  Budget& budget_;
  int64_t taken_ = 0;
};

template <typename Stream>
class Connection {
 public:
  Connection(Stream& stream, tcp::socket& socket, const ConnectionContext& context, std::string client_name,
             std::stop_token stop)
      : stream_(stream),
        socket_(socket),
        context_(context),
        options_(context.options),
        client_name_(std::move(client_name)),
        stop_(std::move(stop)) {}

  // Returns why the connection did not end properly, or null.
  const char* Run() {
    while (!stop_.stop_requested() && One()) {
    }
    context_.progress.FinishWithin(options_.transfer_timeout);
    return fault_;
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
    context_.progress.FinishWithin(options_.transfer_timeout);
    asio::write(stream_, buffers, error);
    context_.progress.NoDeadline();
    if (error) fault_ = kEndedBroken;
    return !error;
  }

  // Counts a request from when it was read until its response was sent.
  class Counted {
   public:
    explicit Counted(Answering& answering) : answering_(answering) { answering_.Begin(); }
    ~Counted() { answering_.End(); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    Answering& answering_;
  };

  // One request and its response; false when the connection is done.
  bool One() {
    Share memory(context_.budget);
    Parser parser;
    parser.body_limit(std::numeric_limits<uint64_t>::max());  // `admit` sees the header first
    parser.header_limit(static_cast<uint32_t>(kMaxHeaderBytes));
    if (const int refused = ReadHeader(parser, memory); refused != 0) return refused != kClosed && Refuse(refused);
    HttpRequest request;
    if (!Convert(parser, &request)) return Refuse(400);
    if (options_.admit) {
      const std::optional<HttpResponse> refusal = Admit(request);
      if (refusal && !parser.is_done()) return RefuseWith(*refusal);
      if (refusal) return Answer(*refusal, keep_alive_, request.method == "HEAD") && keep_alive_;
    }
    if (const int refused = ReadBody(parser, memory); refused != 0) return refused != kClosed && Refuse(refused);
    const Counted counted(context_.answering);
    request.body = std::move(parser.get().body());
    const HttpResponse response = Handle(request);
    if (response.drop) return false;
    return Answer(response, keep_alive_, request.method == "HEAD") && keep_alive_;
  }

  static constexpr int kClosed = -1;

  // 0, the code with which the request is refused, or kClosed.
  int ReadHeader(Parser& parser, Share& memory) {
    if (const int refused = FillHeader(memory); refused != 0) return refused;
    boost::system::error_code error;
    buffer_.consume(parser.put(buffer_.data(), error));
    if (error == http::error::header_limit) return 431;
    return error || !parser.is_header_done() ? 400 : 0;
  }

  // As above. While the body arrives, the connection may be evicted, as while its header does.
  int ReadBody(Parser& parser, Share& memory) {
    if (parser.is_done()) return 0;
    const int64_t body = parser.content_length() ? static_cast<int64_t>(*parser.content_length()) : options_.max_body;
    if (body < 0 || body > options_.max_body) return 413;
    parser.body_limit(static_cast<uint64_t>(options_.max_body));
    if (!memory.GrowTo(kMaxHeaderBytes + body)) return 503;
    if (Text(parser.get()[http::field::expect]) == "100-continue") {
      static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
      if (!Send(asio::buffer(kContinue, sizeof(kContinue) - 1))) return kClosed;
    }
    context_.progress.FinishWithin(options_.transfer_timeout);
    context_.progress.Wait();
    boost::system::error_code error;
    http::read(stream_, buffer_, parser, error);
    if (error == http::error::body_limit) return Work(413);
    if (error) fault_ = kEndedBroken;
    return Work(error ? kClosed : 0);
  }

  // Reads until the buffer holds a whole header. Until then the connection may be evicted: a client that sends its
  // header slowly has no better claim than one that sends nothing.
  int FillHeader(Share& memory) {
    context_.progress.FinishWithin(buffer_.size() == 0 ? options_.idle_timeout : options_.header_timeout);
    context_.progress.SetIdle(buffer_.size() == 0);
    context_.progress.Wait();
    size_t searched = 0;
    int lines = 0;
    for (bool first = buffer_.size() == 0;; first = false) {
      const auto* const bytes = static_cast<const char*>(buffer_.data().data());
      const std::string_view text(bytes, buffer_.size());
      const size_t end = text.find("\r\n\r\n", searched < 3 ? 0 : searched - 3);
      const std::string_view fresh = text.substr(searched, std::min(end, text.size()) - std::min(searched, end));
      lines += static_cast<int>(std::count(fresh.begin(), fresh.end(), '\n'));
      searched = text.size();
      if (std::min(end, text.size()) > kMaxHeaderBytes || lines > kMaxHeaderLines) return Work(431);
      if (end != std::string_view::npos) return Work(0);
      if (!memory.GrowTo(static_cast<int64_t>(buffer_.size() + kReadBytes))) return Work(503);
      boost::system::error_code error;
      const size_t n = stream_.read_some(buffer_.prepare(kReadBytes), error);
      if (error && buffer_.size() > 0) fault_ = kEndedBroken;
      if (error) return kClosed;
      buffer_.commit(n);
      if (!first) continue;
      context_.progress.FinishWithin(options_.header_timeout);
      context_.progress.SetIdle(false);
    }
  }

  int Work(int code) {
    context_.progress.NoDeadline();
    return context_.progress.Work() ? code : kClosed;
  }

  std::optional<HttpResponse> Admit(const HttpRequest& request) {
    try {
      return options_.admit(request);
    } catch (const std::exception& e) {
      base::log::Warn("http server: a request failed", {{"path", request.path}, {"error", e.what()}});
      return Refusal(500);
    }
  }

  HttpResponse Handle(const HttpRequest& request) {
    try {
      return context_.handler(request);
    } catch (const std::exception& e) {
      base::log::Warn("http server: a request failed", {{"path", request.path}, {"error", e.what()}});
      return Refusal(500);
    }
  }

  HttpResponse Refusal(int code) const {
    const char* const message = code == 400   ? "the request line is malformed"
                                : code == 413 ? "Request entity too large"
                                : code == 431 ? "the request's header is too large"
                                : code == 503 ? "the server is reading too many requests; try again"
                                              : "the server met an unexpected value";
    if (options_.refuse) return options_.refuse(code, message);
    return {.code = code, .content_type = "text/plain", .body = std::string(message) + "\n"};
  }

  bool Refuse(int code) {
    if (code == 413 || code == 431) fault_ = kEndedSize;
    return RefuseWith(Refusal(code));
  }

  // Ends the connection; what the client still sends is read for a moment, or the reset would overtake the response.
  bool RefuseWith(const HttpResponse& response) {
    if (!Answer(response, false, false)) return false;
    ::shutdown(socket_.native_handle(), SHUT_WR);
    context_.progress.FinishWithin(kDiscardTime);
    context_.progress.Wait();
    char bytes[kReadBytes];
    for (int64_t left = kDiscardedBytes; left > 0;) {
      const ssize_t n = ::recv(socket_.native_handle(), bytes, sizeof(bytes), 0);
      if (n <= 0) break;
      left -= n;
    }
    return false;
  }

  // All but the body.
  bool Convert(const Parser& parser, HttpRequest* out) {
    const auto& in = parser.get();
    keep_alive_ = in.keep_alive();
    out->method = Text(in.method_string());
    out->host = Text(in[http::field::host]);
    out->origin = Text(in[http::field::origin]);
    out->accept = Text(in[http::field::accept]);
    out->content_type = Text(in[http::field::content_type]);
    out->authorization = Text(in[http::field::authorization]);
    out->user_agent = Text(in[http::field::user_agent]);
    out->request_id = Text(in["X-Request-Id"]);
    out->request_timeout = Text(in["Request-Timeout"]);
    out->client_name = client_name_;
    if (parser.content_length()) out->content_length = static_cast<int64_t>(*parser.content_length());
    out->chunked = parser.chunked();
    out->stop = context_.client_left;
    return ParseTarget(Text(in.target()), out);
  }

  bool Answer(const HttpResponse& response, bool keep_alive, bool head_only) {
    http::response<http::empty_body> head;
    head.version(11);
    head.result(static_cast<unsigned>(response.code));
    head.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) head.insert(name, value);
    if (head.count(http::field::cache_control) == 0) head.set(http::field::cache_control, "no-cache, private");
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
    if (head_only) return Send(asio::buffer(text));
    if (!response.stream) {
      const std::array<asio::const_buffer, 2> parts = {asio::buffer(text), asio::buffer(response.body)};
      return Send(parts);
    }
    if (!Send(asio::buffer(text))) return false;
    Sink sink(*this);
    try {
      response.stream(sink, stop_);
    } catch (const std::exception& e) {
      base::log::Warn("http server: a streamed response failed", {{"error", e.what()}});
      return false;
    }
    return sink.Alive() && Send(asio::buffer("0\r\n\r\n", 5));
  }

  Stream& stream_;
  tcp::socket& socket_;
  const ConnectionContext& context_;
  const HttpServer::Options& options_;
  const std::string client_name_;
  const std::stop_token stop_;
  beast::flat_buffer buffer_;
  bool keep_alive_ = true;
  const char* fault_ = nullptr;  // why the connection does not end properly
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

const char* ServeConnection(tcp::socket& socket, asio::ssl::context* tls, const ConnectionContext& context,
                            std::stop_token stop) {
  try {
    if (tls == nullptr) return Connection<tcp::socket>(socket, socket, context, "", stop).Run();
    asio::ssl::stream<tcp::socket&> stream(socket, *tls);
    boost::system::error_code error;
    context.progress.FinishWithin(context.options.transfer_timeout);
    context.progress.Wait();
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error || !context.progress.Work()) return kEndedBroken;
    using Tls = asio::ssl::stream<tcp::socket&>;
    const char* const fault = Connection<Tls>(stream, socket, context, PeerName(stream.native_handle()), stop).Run();
    stream.shutdown(error);
    return fault;
  } catch (const std::exception& e) {
    base::log::Warn("http server: a connection failed", {{"error", e.what()}});
    return kEndedBroken;
  }
}

}  // namespace medley::http_server

#include "tests/integration/scheduler/replay_server.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string Head(const ReplayReply& reply) {
  std::string head =
      fmt::format("HTTP/1.1 {} Replay\r\nContent-Length: {}\r\nConnection: close\r\n", reply.code, reply.body.size());
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

}  // namespace

struct ReplayServer::Rep {
  Rep(Handler handler_in, const Tls* tls) : handler(std::move(handler_in)), acceptor(io) {
    const tcp::endpoint any(asio::ip::make_address("127.0.0.1"), 0);
    acceptor.open(any.protocol());
    acceptor.bind(any);
    acceptor.listen();
    listening = acceptor.native_handle();
    port = acceptor.local_endpoint().port();
    if (tls != nullptr) {
      context.emplace(asio::ssl::context::tls_server);
      context->use_certificate_chain(asio::buffer(tls->certificate));
      context->use_private_key(asio::buffer(tls->key), asio::ssl::context::pem);
    }
    accepting = std::jthread([this] { Accept(); });
  }

  ~Rep() {
    {
      base::MutexLock lock(mutex);
      closing = true;
      for (const int socket : open) shutdown(socket, SHUT_RDWR);
    }
    stop.request_stop();
    shutdown(listening, SHUT_RDWR);
    accepting.join();
    connections.clear();  // joins
  }

  void Accept() {
    for (;;) {
      error_code error;
      auto socket = std::make_shared<tcp::socket>(io);
      acceptor.accept(*socket, error);
      base::MutexLock lock(mutex);
      if (error || closing) return;
      open.insert(socket->native_handle());
      connections.emplace_back([this, socket] {
        Serve(*socket);
        base::MutexLock done(mutex);
        open.erase(socket->native_handle());
        error_code ignored;
        socket->close(ignored);
      });
    }
  }

  void Serve(tcp::socket& socket) {
    if (!context) return Exchange(socket);
    asio::ssl::stream<tcp::socket&> stream(socket, *context);
    error_code error;
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error) return;
    Exchange(stream);
    stream.shutdown(error);
  }

  template <typename Stream>
  void Exchange(Stream& stream) {
    boost::beast::flat_buffer buffer;
    http::request<http::string_body> raw;
    error_code error;
    http::read(stream, buffer, raw, error);
    if (error) return;
    ReplayRequest request{std::string(raw.method_string()), std::string(raw.target()), {}, raw.body()};
    for (const auto& field : raw) {
      request.headers[Lower(std::string(field.name_string()))] = std::string(field.value());
    }
    const ReplayReply reply = handler(request);
    {
      base::MutexLock lock(mutex);
      requests.push_back(std::move(request));
      came.NotifyAll();
    }
    switch (reply.fault) {
      case ReplayReply::Fault::kReset:
        return;
      case ReplayReply::Fault::kHang: {
        base::MutexLock lock(mutex);
        came.Wait(mutex, stop.get_token(), [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return closing; });
        return;
      }
      case ReplayReply::Fault::kTruncate:
        asio::write(stream, asio::buffer(Head(reply) + reply.body.substr(0, reply.body.size() / 2)), error);
        return;
      case ReplayReply::Fault::kNone:
        asio::write(stream, asio::buffer(Head(reply)), error);
        if (!error) asio::write(stream, asio::buffer(reply.body), error);
    }
  }

  const Handler handler;
  asio::io_context io;
  std::optional<asio::ssl::context> context;
  tcp::acceptor acceptor;
  int listening = -1;
  int port = 0;
  std::stop_source stop;
  mutable base::Mutex mutex;
  mutable base::CondVar came;
  bool closing ABSL_GUARDED_BY(mutex) = false;
  std::set<int> open ABSL_GUARDED_BY(mutex);
  std::vector<ReplayRequest> requests ABSL_GUARDED_BY(mutex);
  std::vector<std::jthread> connections;  // by the accepting thread, then by the destructor
  std::jthread accepting;
};

ReplayServer::ReplayServer(Handler handler, const Tls* tls) : rep_(std::make_unique<Rep>(std::move(handler), tls)) {}
ReplayServer::~ReplayServer() = default;

int ReplayServer::port() const { return rep_->port; }
std::string ReplayServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", rep_->context ? "https" : "http", rep_->port);
}

std::vector<ReplayRequest> ReplayServer::requests() const {
  base::MutexLock lock(rep_->mutex);
  return rep_->requests;
}

bool ReplayServer::WaitForRequests(size_t n) const {
  base::MutexLock lock(rep_->mutex);
  return rep_->came.WaitFor(rep_->mutex, std::stop_token(), std::chrono::seconds(60),
                            [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return rep_->requests.size() >= n; });
}

struct RefusingPort::Rep {
  asio::io_context io;
  tcp::acceptor acceptor{io};
};

RefusingPort::RefusingPort() : rep_(std::make_unique<Rep>()) {
  rep_->acceptor.open(tcp::v4());
  rep_->acceptor.bind(tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));  // and never listen
}
RefusingPort::~RefusingPort() = default;
int RefusingPort::port() const { return rep_->acceptor.local_endpoint().port(); }

int UnusedPort() {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0));
  return acceptor.local_endpoint().port();
}

}  // namespace medley::sched

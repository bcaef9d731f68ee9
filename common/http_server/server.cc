#include "common/http_server/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <list>
#include <thread>

#include "common/base/clock.h"
#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/http_server/connection.h"

namespace medley::http_server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int kSweepMillis = 500;
constexpr int kBacklog = 128;

std::string Reason(const boost::system::error_code& error) { return error.message(); }

}  // namespace

class HttpServer::Core {
 public:
  Core(Options options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        budget_(options_.max_request_memory),
        acceptor_(io_) {}

  ~Core() { Stop(); }

  absl::Status Start() {
    MEDLEY_RETURN_IF_ERROR(LoadTls());
    boost::system::error_code error;
    const auto address = asio::ip::make_address(options_.address, error);
    if (error) return base::InvalidArgument("address '{}': {}", options_.address, Reason(error));
    const tcp::endpoint endpoint(address, static_cast<uint16_t>(options_.port));
    if (Bind(endpoint, error)) acceptor_.listen(kBacklog, error);
    if (error) {
      const bool used = error == asio::error::address_in_use;
      return base::Unavailable("cannot listen: address {} {}", base::JoinHostPort(options_.address, options_.port),
                               used ? "is in use" : Reason(error));
    }
    port_ = acceptor_.local_endpoint().port();
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return base::ErrnoStatus(errno, "eventfd");
    thread_ = std::jthread([this](std::stop_token stop) { Accept(stop); });
    return absl::OkStatus();
  }

  void Stop() {
    if (wake_ < 0) return;
    thread_.request_stop();
    Wake();
    thread_.join();
    ::close(wake_);
    wake_ = -1;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (Peer& peer : peers_) peer.End();
    peers_.clear();  // joins
  }

  absl::Status SetListening(bool listening) {
    base::MutexLock lock(mutex_);
    if (!thread_.joinable()) return base::FailedPrecondition("set listening: the server does not run");
    wanted_ = listening;
    Wake();
    const bool done =
        changed_.WaitFor(mutex_, {}, base::seconds(20), [&] { return listening_ == wanted_ || !listen_error_.ok(); });
    return done ? listen_error_ : base::DeadlineExceeded("set listening: no change");
  }

  int port() const { return port_; }
  bool tls() const { return tls_ != nullptr; }
  int64_t connections() const { return connections_; }

 private:
  // The socket outlives the thread, so that it may be shut down from here at any time.
  struct Peer {
    explicit Peer(tcp::socket s) : socket(std::move(s)) {}
    void End() {
      ended = true;
      thread.request_stop();
      ::shutdown(socket.native_handle(), SHUT_RDWR);
    }
    tcp::socket socket;
    Progress progress;
    bool ended = false;  // of thread_
    std::atomic<bool> done = false;
    std::jthread thread;  // last: joins before the other members are destroyed
  };

  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_, &one, sizeof(one));
  }

  bool Bind(const tcp::endpoint& endpoint, boost::system::error_code& error) {
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.non_blocking(true, error);
    return !error;
  }

  // Of thread_: what SetListening asks for. A socket that is bound but does not listen keeps the port and refuses
  // clients.
  void FollowListening() {
    base::MutexLock lock(mutex_);
    if (wanted_ == listening_) return;
    boost::system::error_code error;
    if (!wanted_) {
      const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
      acceptor_.close(error);
      for (Peer& peer : peers_) peer.End();
      peers_.clear();  // joins
      Bind(endpoint, error);
    } else {
      acceptor_.listen(kBacklog, error);
    }
    if (error) listen_error_ = base::FailedPrecondition("port {}: {}", port_, Reason(error));
    listening_ = wanted_;
    changed_.NotifyAll();
  }

  absl::Status LoadTls() {
    const bool from_memory = !options_.certificate_pem.empty();
    if (options_.certificate.empty() && options_.key.empty() && !from_memory) return absl::OkStatus();
    tls_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    boost::system::error_code error;
    tls_->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
    if (from_memory) {
      tls_->use_certificate_chain(asio::buffer(options_.certificate_pem), error);
      if (!error) tls_->use_private_key(asio::buffer(options_.key_pem), asio::ssl::context::pem, error);
      return error ? base::InvalidArgument("the certificate in memory: {}", Reason(error)) : absl::OkStatus();
    }
    tls_->use_certificate_chain_file(options_.certificate.string(), error);
    if (error) {
      return base::InvalidArgument("certificate {}: {}", options_.certificate.string(), Reason(error));
    }
    tls_->use_private_key_file(options_.key.string(), asio::ssl::context::pem, error);
    if (error) return base::InvalidArgument("key {}: {}", options_.key.string(), Reason(error));
    if (options_.client_ca.empty()) return absl::OkStatus();
    tls_->load_verify_file(options_.client_ca.string(), error);
    if (error) {
      return base::InvalidArgument("client CA {}: {}", options_.client_ca.string(), Reason(error));
    }
    tls_->set_verify_mode(asio::ssl::verify_peer, error);  // asked for, not demanded: tokens do too
    return absl::OkStatus();
  }

  void Accept(std::stop_token stop) {
    while (!stop.stop_requested()) {
      // A socket that does not listen would say "hung up" all the time.
      const int listener = listening_ ? acceptor_.native_handle() : -1;
      pollfd fds[2] = {{listener, POLLIN, 0}, {wake_, POLLIN, 0}};
      ::poll(fds, 2, kSweepMillis);
      Sweep();
      uint64_t ignored = 0;
      if ((fds[1].revents & POLLIN) != 0) [[maybe_unused]]
        const auto n = ::read(wake_, &ignored, sizeof(ignored));
      FollowListening();
      if ((fds[0].revents & POLLIN) == 0 || !listening_) continue;
      boost::system::error_code error;
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error) continue;
      socket.set_option(tcp::no_delay(true), error);
      if (Open() >= options_.max_connections && !EvictOldest()) {
        Refuse(std::move(socket));
        continue;
      }
      ++connections_;
      Serve(std::move(socket));
    }
  }

  void Serve(tcp::socket socket) {
    Peer& peer = peers_.emplace_back(std::move(socket));
    peer.progress.Wait();  // before its thread runs: a burst of clients must not look like work
    peer.thread = std::jthread([this, &peer](std::stop_token stop) {
      ServeConnection(peer.socket, tls_.get(), {options_, handler_, budget_, peer.progress}, stop);
      ::shutdown(peer.socket.native_handle(), SHUT_RDWR);
      peer.done = true;
    });
  }

  // Connections that have not been asked to end.
  int64_t Open() const {
    return std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.ended && !peer.done; });
  }

  // Ends the connection that has waited longest for a request. False: none waits.
  bool EvictOldest() {
    for (;;) {
      Peer* oldest = nullptr;
      int64_t since = 0;
      for (Peer& peer : peers_) {
        const int64_t waiting = peer.ended ? 0 : peer.progress.waiting_since();
        if (waiting == 0 || (oldest != nullptr && waiting >= since)) continue;
        oldest = &peer;
        since = waiting;
      }
      if (oldest == nullptr) return false;
      if (!oldest->progress.Evict(since)) continue;  // its request has come meanwhile
      oldest->End();
      return true;
    }
  }

  static void Refuse(tcp::socket socket) {
    static constexpr char kAnswer[] =
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";
    ::send(socket.native_handle(), kAnswer, sizeof(kAnswer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void Sweep() {
    for (auto it = peers_.begin(); it != peers_.end();) {
      if (it->progress.Overdue()) it->End();
      it = it->done ? peers_.erase(it) : std::next(it);
    }
  }

  const Options options_;
  const Handler handler_;
  Budget budget_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  std::unique_ptr<asio::ssl::context> tls_;
  int port_ = 0;
  int wake_ = -1;
  std::list<Peer> peers_;  // of thread_, and of Stop after it has joined
  std::atomic<int64_t> connections_ = 0;
  base::Mutex mutex_;
  base::CondVar changed_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = true;
  std::atomic<bool> listening_ = true;  // written by thread_ with the mutex
  absl::Status listen_error_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

HttpServer::HttpServer(Options options, Handler handler)
    : core_(std::make_unique<Core>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
absl::Status HttpServer::Start() { return core_->Start(); }
void HttpServer::Stop() { core_->Stop(); }
int HttpServer::port() const { return core_->port(); }
bool HttpServer::tls() const { return core_->tls(); }
absl::Status HttpServer::SetListening(bool listening) { return core_->SetListening(listening); }
int64_t HttpServer::connections() const { return core_->connections(); }

}  // namespace medley::http_server

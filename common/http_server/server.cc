#include "common/http_server/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <list>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/http_server/connection.h"
#include "common/http_server/tls_files.h"

namespace medley::http_server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// A client that leaves while its request is answered is noticed at once, if the request began before the last sweep.
constexpr int kSweepMillis = 500;
constexpr int kSweepMillisInUse = 50;
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
    const auto address = Resolve(error);
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
    EndAll();
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
  int64_t open() const { return open_; }
  int answering() const { return answering_.count(); }
  bool WaitAnswered(base::nanoseconds timeout) { return answering_.WaitNone(timeout); }

 private:
  // The socket outlives the thread, so that it may be shut down from here at any time.
  struct Peer {
    explicit Peer(tcp::socket s) : socket(std::move(s)) {}
    void End(const char* why) {
      if (reason == nullptr) reason = why;
      ended = true;
      thread.request_stop();
      left.request_stop();
      ::shutdown(socket.native_handle(), SHUT_RDWR);
    }
    tcp::socket socket;
    Progress progress;
    std::stop_source left;                      // requested when nobody waits for a response any more
    bool ended = false;                         // of thread_
    std::atomic<const char*> reason = nullptr;  // why the server ended it; null: it did not, or it stops
    std::atomic<bool> done = false;
    std::jthread thread;  // last: joins before the other members are destroyed
  };

  void EndAll() {
    for (Peer& peer : peers_) peer.End(nullptr);
    peers_.clear();  // joins
    open_ = 0;
  }

  asio::ip::address Resolve(boost::system::error_code& error) {
    const auto address = asio::ip::make_address(options_.address, error);
    if (!error) return address;
    boost::system::error_code unknown;
    const auto found = tcp::resolver(io_).resolve(options_.address, "", unknown);
    if (unknown || found.empty()) return address;
    error.clear();
    return found.begin()->endpoint().address();
  }

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

  // For thread_: what SetListening asks for. A socket that is bound but does not listen keeps the port and refuses
  // clients.
  void FollowListening() {
    base::MutexLock lock(mutex_);
    if (wanted_ == listening_) return;
    boost::system::error_code error;
    if (!wanted_) {
      const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
      acceptor_.close(error);
      EndAll();
      Bind(endpoint, error);
    } else {
      acceptor_.listen(kBacklog, error);
    }
    if (error) listen_error_ = base::FailedPrecondition("port {}: {}", port_, Reason(error));
    listening_ = wanted_;
    changed_.NotifyAll();
  }

  absl::Status LoadTls() {
    if (options_.certificate.empty() && options_.key.empty() && options_.certificate_pem.empty()) {
      return absl::OkStatus();
    }
    MEDLEY_ASSIGN_OR_RETURN(tls_, TlsFiles::Load({.certificate = options_.certificate,
                                                  .key = options_.key,
                                                  .client_ca = options_.client_ca,
                                                  .require_client = options_.require_client_certificate,
                                                  .certificate_pem = options_.certificate_pem,
                                                  .key_pem = options_.key_pem},
                                                 clock_));
    return absl::OkStatus();
  }

  // Waits for clients, for SetListening and Stop, and for clients to leave whose requests are answered.
  void Wait(pollfd (&fds)[2]) {
    watched_.assign(std::begin(fds), std::end(fds));
    watched_peers_.clear();
    for (Peer& peer : peers_) {
      if (peer.done || !peer.progress.working() || peer.left.stop_requested()) continue;
      watched_.push_back({peer.socket.native_handle(), POLLRDHUP, 0});
      watched_peers_.push_back(&peer);
    }
    ::poll(watched_.data(), watched_.size(), peers_.empty() ? kSweepMillis : kSweepMillisInUse);
    std::copy_n(watched_.begin(), std::size(fds), fds);
    for (size_t i = 0; i < watched_peers_.size(); ++i) {
      if (watched_[i + std::size(fds)].revents != 0) watched_peers_[i]->left.request_stop();
    }
  }

  void Accept(std::stop_token stop) {
    while (!stop.stop_requested()) {
      // A socket that does not listen would say "hung up" all the time.
      const int listener = listening_ ? acceptor_.native_handle() : -1;
      pollfd fds[2] = {{listener, POLLIN, 0}, {wake_, POLLIN, 0}};
      Wait(fds);
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
      ++open_;
      Serve(std::move(socket));
    }
  }

  void Serve(tcp::socket socket) {
    Peer& peer = peers_.emplace_back(std::move(socket));
    peer.progress.Wait();  // before its thread runs: a burst of clients must not look like work
    peer.thread = std::jthread([this, &peer, tls = tls_ ? tls_->Current() : nullptr](std::stop_token stop) {
      const char* fault =
          ServeConnection(peer.socket, tls.get(),
                          {options_, handler_, budget_, peer.progress, answering_, peer.left.get_token()}, stop);
      ::shutdown(peer.socket.native_handle(), SHUT_RDWR);
      if (const char* const reason = peer.reason) {
        fault = reason;
      } else if (stop.stop_requested()) {
        fault = nullptr;  // the server stops
      }
      if (fault != nullptr && options_.ended) options_.ended(fault);
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
      oldest->End(kEndedTooMany);
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
      if (it->progress.Overdue()) it->End(it->progress.idle() ? kEndedIdle : kEndedSlow);
      if (!it->done) {
        ++it;
        continue;
      }
      it = peers_.erase(it);
      --open_;
    }
  }

  const Options options_;
  const Handler handler_;
  Budget budget_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  base::SystemClock clock_;
  std::unique_ptr<TlsFiles> tls_;
  Answering answering_;
  int port_ = 0;
  int wake_ = -1;
  std::list<Peer> peers_;  // of thread_, and of Stop after it has joined
  std::vector<pollfd> watched_;
  std::vector<Peer*> watched_peers_;
  std::atomic<int64_t> connections_ = 0, open_ = 0;
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
int64_t HttpServer::open() const { return core_->open(); }
int HttpServer::answering() const { return core_->answering(); }
bool HttpServer::WaitAnswered(base::nanoseconds timeout) { return core_->WaitAnswered(timeout); }

}  // namespace medley::http_server

#include "common/http2_front/front.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/http2_front/connection.h"
#include "common/http2_front/listen.h"

namespace medley::http2_front {
namespace {

constexpr int kPacedMillis = 10;
constexpr int kSweepMillis = 500;
constexpr int kAcceptAtOnce = 64;
constexpr unsigned kMaxLoops = 4;

}  // namespace

// One thread and its connections.
class Front::Loop {
 public:
  Loop(State& state, int capacity);
  ~Loop();

  void Start() {
    thread_ = std::jthread([this] { Run(); });
  }
  // The client's connection is this loop's from now on. Of other threads too.
  void Add(int client);
  void Stop();
  void Accepts(int listener);  // before Start
  int connections() const { return count_; }

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    uint32_t client_events = 0, server_events = 0;
    bool server_known = false;
    bool left = false;  // the client has closed its half, which ends a connection of gRPC
  };
  using Entries = std::map<int, Entry>;  // by the client's descriptor

  void Run();
  void Wake() const;
  void TakeNew(base::SteadyTime now);
  bool MakePlace();
  void MoveAll(std::vector<int>& ready, base::SteadyTime now);
  void Sweep(base::SteadyTime now);
  void Accept();
  void Listen(uint32_t events) const;
  void Watch(Entry& entry) const;
  void End(Entries::iterator at);

  State& state_;
  const int capacity_;
  const int poll_ = epoll_create1(EPOLL_CLOEXEC);
  const int wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int listener_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<int> count_{0};
  base::Mutex mutex_;
  std::vector<int> new_ ABSL_GUARDED_BY(mutex_);
  Entries entries_;               // of the thread
  std::map<int, int> client_of_;  // by the server's descriptor
  std::vector<int> soon_;         // clients: paced, or with more to move
  std::string scratch_;
  std::jthread thread_;
};

struct Front::State {
  explicit State(const FrontOptions& given)
      : options(given), budget(given.budget), shared{.budget = budget, .limits = given.limits, .hand_over = {}} {
    if (given.tls) tls.emplace(*given.tls);
  }

  const FrontOptions& options;
  const base::SystemClock clock;
  CallBudget budget;
  Connection::Shared shared;
  std::optional<Tls> tls;
  int listener = -1;
  size_t next = 0;  // of the loop that accepts
  std::vector<std::unique_ptr<Loop>> loops;
};

Front::Loop::Loop(State& state, int capacity) : state_(state), capacity_(capacity) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = wake_}};
  epoll_ctl(poll_, EPOLL_CTL_ADD, wake_, &event);
}

Front::Loop::~Loop() {
  Stop();
  close(wake_);
  close(poll_);
}

void Front::Loop::Accepts(int listener) {
  listener_ = listener;
  epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
  epoll_ctl(poll_, EPOLL_CTL_ADD, listener, &event);
}

void Front::Loop::Listen(uint32_t events) const {
  epoll_event event{.events = events, .data = {.fd = listener_}};
  epoll_ctl(poll_, EPOLL_CTL_MOD, listener_, &event);
}

void Front::Loop::Add(int client) {
  base::MutexLock lock(mutex_);
  new_.push_back(client);
  Wake();
}

void Front::Loop::Wake() const { eventfd_write(wake_, 1); }

void Front::Loop::Stop() {
  stop_ = true;
  Wake();
  if (thread_.joinable()) thread_.join();
}

// Closes a connection that is least missed. False: all have open calls. What has arrived for a connection may be a call
// that the meter has not seen, so those for which something waits are passed over. They count as idle after a few,
// since a client can always leave something behind.
bool Front::Loop::MakePlace() {
  constexpr int kPassedOver = 8;
  std::vector<int> passed_over;
  auto first = entries_.end();
  for (int i = 0; i <= kPassedOver; ++i) {
    auto victim = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.connection->in_use() || std::ranges::count(passed_over, it->first) > 0) continue;
      if (victim == entries_.end()) victim = it;
      const Connection &one = *it->second.connection, &other = *victim->second.connection;
      // First those that have not introduced themselves.
      if (std::pair(one.server() >= 0, one.moved()) < std::pair(other.server() >= 0, other.moved())) victim = it;
    }
    if (victim == entries_.end()) break;
    if (!victim->second.connection->HasWork()) {
      End(victim);
      return true;
    }
    if (first == entries_.end()) first = victim;
    passed_over.push_back(victim->first);
  }
  if (first == entries_.end()) return false;
  End(first);
  return true;
}

void Front::Loop::TakeNew(base::SteadyTime now) {
  std::vector<int> clients;
  {
    base::MutexLock lock(mutex_);
    clients.swap(new_);
  }
  for (const int client : clients) {
    const bool place = std::ssize(entries_) < capacity_ || MakePlace();
    const Tls::Context context = place && state_.tls ? state_.tls->Current(now) : nullptr;
    std::shared_ptr<SSL> tls;
    if (context != nullptr) {
      tls = {SSL_new(context.get()), [context](SSL* ssl) { SSL_free(ssl); }};
      SSL_set_fd(tls.get(), client);
    }
    if (!place || (state_.tls && tls == nullptr)) {
      close(client);
      continue;
    }
    const int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Entry& entry = entries_[client];
    entry.connection = std::make_unique<Connection>(client, std::move(tls), state_.shared, now);
    entry.client_events = EPOLLIN | EPOLLRDHUP;
    epoll_event event{.events = entry.client_events, .data = {.fd = client}};
    epoll_ctl(poll_, EPOLL_CTL_ADD, client, &event);
  }
  count_ = static_cast<int>(entries_.size());
}

void Front::Loop::End(Entries::iterator at) {
  const Connection& connection = *at->second.connection;
  if (*connection.why() != '\0') base::log::Debug("closed a connection of HTTP/2", {{"why", connection.why()}});
  if (connection.server() >= 0) client_of_.erase(connection.server());
  entries_.erase(at);  // closing its descriptors ends their watch
}

void Front::Loop::Watch(Entry& entry) const {
  const Connection& connection = *entry.connection;
  const uint32_t client_events = connection.client_events() | (entry.left ? 0U : EPOLLRDHUP);
  if (client_events != entry.client_events) {
    epoll_event event{.events = client_events, .data = {.fd = connection.client()}};
    epoll_ctl(poll_, EPOLL_CTL_MOD, connection.client(), &event);
    entry.client_events = client_events;
  }
  if (connection.server() < 0) return;
  const uint32_t events = connection.server_events();
  if (entry.server_known && events == entry.server_events) return;
  epoll_event event{.events = events, .data = {.fd = connection.server()}};
  epoll_ctl(poll_, entry.server_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, connection.server(), &event);
  entry.server_known = true;
  entry.server_events = events;
}

void Front::Loop::MoveAll(std::vector<int>& ready, base::SteadyTime now) {
  std::sort(ready.begin(), ready.end());
  ready.erase(std::unique(ready.begin(), ready.end()), ready.end());
  soon_.clear();
  for (const int client : ready) {
    const auto found = entries_.find(client);
    if (found == entries_.end()) continue;
    Connection& connection = *found->second.connection;
    const bool unknown = connection.server() < 0;
    const bool moves = connection.Move(scratch_, now);
    // What a client has left behind waits neither for the budget nor for the server.
    if (!moves || (found->second.left && !connection.again())) {
      End(found);
      continue;
    }
    if (unknown && connection.server() >= 0) client_of_[connection.server()] = client;
    if (connection.again() || connection.paced()) soon_.push_back(client);
    Watch(found->second);
  }
  count_ = static_cast<int>(entries_.size());
}

// Ends connections that have not introduced themselves in time, those whose clients read nothing, because the server's
// threads wait for them, and those that have been paced for too long: while the client's bytes are not read, nothing
// says that it has left.
void Front::Loop::Sweep(base::SteadyTime now) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto at = it++;
    const Connection& connection = *at->second.connection;
    if (connection.server() < 0 && now - connection.opened() > state_.options.introduction) {
      End(at);
    } else if (connection.paced_for(now) > state_.options.max_paced ||
               connection.stalled_for(now) > state_.options.max_stalled) {
      End(at);
    }
  }
  if (listener_ >= 0) Listen(EPOLLIN);
  count_ = static_cast<int>(entries_.size());
}

void Front::Loop::Run() {
  sigset_t broken_pipe;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);  // OpenSSL writes to connections that the client may have closed
  pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
  std::array<epoll_event, 256> events{};
  base::SteadyTime sweep = state_.clock.Steady();
  std::vector<int> ready;
  bool again = false;
  while (!stop_) {
    const int wait = again ? 0 : soon_.empty() ? kSweepMillis : kPacedMillis;
    const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), wait);
    const base::SteadyTime now = state_.clock.Steady();
    ready = soon_;
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == wake_) {
        eventfd_t value = 0;
        eventfd_read(wake_, &value);
        TakeNew(now);
      } else if (fd == listener_) {
        Accept();
      } else if (const auto server = client_of_.find(fd); server != client_of_.end()) {
        ready.push_back(server->second);
      } else if (const auto client = entries_.find(fd); client != entries_.end()) {
        client->second.left |= (events[static_cast<size_t>(i)].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        ready.push_back(fd);
      }
    }
    MoveAll(ready, now);
    again = std::any_of(soon_.begin(), soon_.end(), [&](int c) { return entries_.at(c).connection->again(); });
    if (now < sweep) continue;
    sweep = now + base::milliseconds(kSweepMillis);
    Sweep(now);
  }
  const base::SteadyTime now = state_.clock.Steady();
  for (auto& [client, entry] : entries_) {
    do {
      if (!entry.connection->Move(scratch_, now)) break;  // the last bytes of the server
    } while (entry.connection->again());
  }
  entries_.clear();
  client_of_.clear();
  count_ = 0;
  base::MutexLock lock(mutex_);
  for (const int client : new_) close(client);
  new_.clear();
}

void Front::Loop::Accept() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      state_.loops[state_.next++ % state_.loops.size()]->Add(client);
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
    if (errno == EINVAL) {  // Close
      epoll_ctl(poll_, EPOLL_CTL_DEL, listener_, nullptr);
      listener_ = -1;
      return;
    }
    // No descriptors: one is free when a connection ends. Sweep listens again.
    if (!MakePlace()) return Listen(0);
  }
}

Front::Front(FrontOptions options) : options_(std::move(options)), state_(std::make_unique<State>(options_)) {}

Front::~Front() { Stop(); }

absl::Status Front::Bind() {
  MEDLEY_ASSIGN_OR_RETURN(const Listener made, Listen(options_.host, options_.port));
  port_ = made.port;
  state_->listener = made.fd;
  return absl::OkStatus();
}

void Front::Start(std::function<void(int)> hand_over) {
  state_->shared.hand_over = std::move(hand_over);
  if (state_->tls) state_->tls->Current(state_->clock.Steady());  // says now what is not valid
  const int connections = AllowedConnections(options_.max_connections);
  if (connections < options_.max_connections) {
    base::log::Warn("the limit of descriptors allows fewer connections",
                    {{"port", std::to_string(port_)}, {"connections", std::to_string(connections)}});
  }
  const unsigned loops = state_->options.threads > 0
                             ? static_cast<unsigned>(state_->options.threads)
                             : std::clamp(std::thread::hardware_concurrency() / 2, 1U, kMaxLoops);
  for (unsigned i = 0; i < loops; ++i) {
    state_->loops.push_back(std::make_unique<Loop>(*state_, std::max(1, connections / static_cast<int>(loops))));
  }
  state_->loops.front()->Accepts(state_->listener);
  for (const auto& loop : state_->loops) loop->Start();
}

int Front::connections() const {
  int sum = 0;
  for (const auto& loop : state_->loops) sum += loop->connections();
  return sum;
}

void Front::Close() {
  if (state_->listener >= 0) shutdown(state_->listener, SHUT_RDWR);
}

void Front::Stop() {
  Close();
  for (const auto& loop : state_->loops) loop->Stop();
  state_->loops.clear();
  if (state_->listener >= 0) close(std::exchange(state_->listener, -1));
}

}  // namespace medley::http2_front

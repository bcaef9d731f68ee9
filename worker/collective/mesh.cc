#include "worker/collective/mesh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "common/base/hash.h"
#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// An IP address and port as the system takes them.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

absl::StatusOr<Address> ParseAddress(const std::string& ip, uint16_t port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
  } else {
    return base::InvalidArgument("'{}' is no IP address", ip);
  }
  return address;
}

absl::Status Failed(std::string_view what, const std::string& on) {
  return base::Unavailable("{} {}: {}", what, on, std::strerror(errno));
}

absl::StatusOr<Socket> Listen(const std::string& ip, int backlog, uint16_t& port) {
  MEDLEY_ASSIGN_OR_RETURN(Address address, ParseAddress(ip, 0));
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0 || ::bind(socket.get(), address.get(), address.size) != 0 ||
      ::listen(socket.get(), backlog) != 0 || ::getsockname(socket.get(), address.get(), &address.size) != 0) {
    return Failed("listening on", ip);
  }
  port = ntohs(address.storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port
                                                    : reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port);
  return socket;
}

base::SteadyTime After(base::nanoseconds time) { return base::SystemClock().Steady() + time; }

absl::StatusOr<Socket> Dial(const std::string& ip, uint16_t port, const Patience& patience) {
  MEDLEY_ASSIGN_OR_RETURN(Address address, ParseAddress(ip, port));
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return Failed("connecting to", ip);
  if (::connect(socket.get(), address.get(), address.size) == 0) return socket;
  if (errno != EINPROGRESS) return Failed("connecting to", ip);
  MEDLEY_RETURN_IF_ERROR(AwaitSocket(socket.get(), POLLOUT, patience, "the connection"));
  socklen_t size = sizeof errno;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &errno, &size) != 0 || errno != 0) {
    return Failed("connecting to", ip);
  }
  return socket;
}

void SetOptions(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

// The first bytes of the connecting rank: which group it wants, and its rank.
struct Hello {
  uint64_t group = 0;
  uint64_t rank = 0;
};

// Takes the connections of the larger ranks. Each handshake has its own thread, so that a stranger who says nothing
// holds up nobody; at most kMaxHandshakes run at once.
class Acceptor {
 public:
  Acceptor(const GroupOptions& options, std::shared_ptr<TlsContext> context)
      : options_(options), context_(std::move(context)), streams_(options.members.size()) {}

  absl::StatusOr<std::vector<std::unique_ptr<TlsStream>>> Accept(const Socket& listener, base::SteadyTime deadline,
                                                                 const std::stop_token& stop) {
    std::list<std::jthread> handshakes;
    std::jthread accepting([&](const std::stop_token& own_stop) {
      while (AwaitSocket(listener.get(), POLLIN, {deadline, own_stop}, "the wait for the other members").ok()) {
        {
          base::MutexLock lock(mutex_);
          const auto room = [this] { return handshakes_ < kMaxHandshakes; };
          if (!changed_.WaitFor(mutex_, own_stop, base::seconds(1), room)) continue;
        }
        const int socket = ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) continue;  // closed before it was accepted
        Count(+1);
        handshakes.emplace_back([this, socket, deadline](const std::stop_token& handshake_stop) {
          Take(socket, {deadline, handshake_stop});
          Count(-1);
        });
      }
    });
    absl::Status status;
    {
      base::MutexLock lock(mutex_);
      const auto complete = [this] { return FirstMissing() == nullptr; };
      if (!changed_.WaitFor(mutex_, stop, deadline - base::SystemClock().Steady(), complete)) {
        status = stop.stop_requested() ? base::Cancelled("the wait for {} was stopped", *FirstMissing())
                                       : base::DeadlineExceeded("{} did not connect", *FirstMissing());
      }
    }
    accepting.request_stop();
    ::shutdown(listener.get(), SHUT_RDWR);  // wakes the thread
    accepting.join();
    for (std::jthread& handshake : handshakes) handshake.request_stop();  // of strangers
    handshakes.clear();
    MEDLEY_RETURN_IF_ERROR(status);
    base::MutexLock lock(mutex_);
    return std::move(streams_);
  }

 private:
  static constexpr int kMaxHandshakes = 64;

  void Count(int change) {
    base::MutexLock lock(mutex_);
    handshakes_ += change;
    changed_.NotifyAll();
  }
  void Take(int socket, const Patience& patience) {
    SetOptions(socket);
    const Patience own{std::min(patience.deadline, After(options_.connect_timeout)), patience.stop};
    auto stream = TlsStream::Start(socket, false, context_, own);
    if (!stream.ok()) return;
    Hello hello;
    if (!(*stream)->Read(std::as_writable_bytes(std::span(&hello, 1)), &own).ok()) return;
    base::MutexLock lock(mutex_);
    const bool expected = hello.group == base::Hash64(options_.name) && hello.rank < streams_.size() &&
                          hello.rank > static_cast<uint64_t>(options_.rank) && streams_[hello.rank] == nullptr;
    if (expected) streams_[hello.rank] = *std::move(stream);
    changed_.NotifyAll();
  }
  const std::string* FirstMissing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (size_t rank = static_cast<size_t>(options_.rank) + 1; rank < streams_.size(); ++rank) {
      if (streams_[rank] == nullptr) return &options_.members[rank];
    }
    return nullptr;
  }

  const GroupOptions& options_;
  const std::shared_ptr<TlsContext> context_;
  base::Mutex mutex_;
  base::CondVar changed_;
  int handshakes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<TlsStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<TlsStream>> ConnectTo(const GroupOptions& options, const std::string& address,
                                                     const std::shared_ptr<TlsContext>& context,
                                                     const Patience& patience) {
  const auto parts = base::SplitHostPort(address);
  if (!parts.ok()) return parts.status();
  MEDLEY_ASSIGN_OR_RETURN(Socket socket, Dial(parts->host, static_cast<uint16_t>(parts->port), patience));
  SetOptions(socket.get());
  MEDLEY_ASSIGN_OR_RETURN(auto stream, TlsStream::Start(socket.Release(), true, context, patience));
  const Hello hello{base::Hash64(options.name), static_cast<uint64_t>(options.rank)};
  MEDLEY_RETURN_IF_ERROR(stream->Write(std::as_bytes(std::span(&hello, 1))));
  return stream;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<TlsStream>>> ConnectMesh(const GroupOptions& options, KeyValueStore& store,
                                                                    const std::stop_token& stop) {
  const auto key = [&](size_t rank) { return fmt::format("{}/tls/{}", options.name, rank); };
  const auto own = static_cast<size_t>(options.rank);
  MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> context, TlsContext::Make(*options.tls));
  uint16_t port = 0;
  MEDLEY_ASSIGN_OR_RETURN(const Socket listener,
                          Listen(options.address, static_cast<int>(options.members.size()) + 8, port));
  MEDLEY_RETURN_IF_ERROR(store.Put(key(own), base::JoinHostPort(options.address, port)));
  std::vector<std::string> keys;
  for (size_t rank = 0; rank < options.members.size(); ++rank) keys.push_back(key(rank));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, store.Get(keys, options.rendezvous_timeout, stop));
  // A rank accepts when it is connected to those below it, which wait for it: the last may wait for all.
  const base::SteadyTime deadline = After(options.connect_timeout * static_cast<int>(options.members.size()));
  std::vector<std::unique_ptr<TlsStream>> smaller(own);
  for (size_t rank = 0; rank < own; ++rank) {
    auto stream = ConnectTo(options, addresses[rank], context, {deadline, stop});
    if (!stream.ok()) return base::Annotate(stream.status(), options.members[rank]);
    smaller[rank] = *std::move(stream);
  }
  auto streams = Acceptor(options, context).Accept(listener, deadline, stop);
  if (streams.ok()) std::move(smaller.begin(), smaller.end(), streams->begin());
  return streams;
}

}  // namespace medley::worker

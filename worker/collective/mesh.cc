#include "worker/collective/mesh.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <absl/strings/numbers.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/mutex.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/collective/plain_stream.h"
#include "worker/collective/tls_stream.h"

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

// From the address that the others know of this process.
absl::StatusOr<Socket> Dial(const std::string& own, const std::string& ip, uint16_t port, const Patience& patience) {
  MEDLEY_ASSIGN_OR_RETURN(Address address, ParseAddress(ip, port));
  MEDLEY_ASSIGN_OR_RETURN(Address source, ParseAddress(own, 0));
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return Failed("connecting to", ip);
  if (source.storage.ss_family == address.storage.ss_family && ::bind(socket.get(), source.get(), source.size) != 0) {
    return Failed("connecting from", own);
  }
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

// Begins a stream on a connected socket, which it owns from now on; `client`: this end has connected.
using StartStream =
    std::function<absl::StatusOr<std::unique_ptr<PeerStream>>(int socket, bool client, const Patience&)>;

absl::StatusOr<StartStream> StarterOf(const GroupOptions& options) {
  if (!options.tls.has_value()) {
    return [](int socket, bool, const Patience&) -> absl::StatusOr<std::unique_ptr<PeerStream>> {
      return MakePlainStream(socket);
    };
  }
  MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<TlsContext> context, TlsContext::Make(*options.tls));
  return [context = std::move(context)](int socket, bool client,
                                        const Patience& patience) -> absl::StatusOr<std::unique_ptr<PeerStream>> {
    return TlsStream::Start(socket, client, context, patience);
  };
}

// The first bytes of the connecting rank: the number that the accepting one has published, and its own rank.
struct Hello {
  uint64_t nonce = 0;
  uint64_t rank = 0;
};

// What a rank publishes: "HOST:PORT NONCE". The nonce tells connections of this group from late ones of another that
// had the same port.
std::string Published(const std::string& host, uint16_t port, uint64_t nonce) {
  return fmt::format("{} {:016x}", base::JoinHostPort(host, port), nonce);
}
struct Listener {
  std::string host;
  uint16_t port = 0;
  uint64_t nonce = 0;
};
absl::StatusOr<Listener> ParseListener(const std::string& text) {
  const size_t space = text.find(' ');
  const auto parts = base::SplitHostPort(text.substr(0, space));
  if (!parts.ok()) return parts.status();
  Listener listener{parts->host, static_cast<uint16_t>(parts->port), 0};
  if (space == std::string::npos || !absl::SimpleHexAtoi(text.substr(space + 1), &listener.nonce)) {
    return base::InvalidArgument("'{}' is not 'HOST:PORT NONCE'", text);
  }
  return listener;
}

// The address of a socket's other end, as text.
std::string AddressOf(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* ip = storage.ss_family == AF_INET
                       ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr)
                       : &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return ::inet_ntop(storage.ss_family, ip, text, sizeof text) == nullptr ? "" : text;
}

// Takes the connections of the larger ranks. Each handshake has its own thread, so that a stranger who says nothing
// holds up nobody. Of those from other addresses than the members', at most kMaxStrangers shake hands at once; such a
// one can be a member all the same, behind a proxy.
class Acceptor {
 public:
  Acceptor(const GroupOptions& options, const StartStream& start, uint64_t nonce, std::set<std::string> hosts)
      : options_(options), start_(start), nonce_(nonce), hosts_(std::move(hosts)), streams_(options.members.size()) {}

  absl::StatusOr<std::vector<std::unique_ptr<PeerStream>>> Accept(const Socket& listener, base::SteadyTime deadline,
                                                                  const std::stop_token& stop) {
    std::list<Handshake> handshakes;
    std::jthread accepting([&](const std::stop_token& own_stop) {
      while (AwaitSocket(listener.get(), POLLIN, {deadline, own_stop}, "the wait for the other members").ok()) {
        std::erase_if(handshakes, [](const Handshake& one) { return one.done.load(); });
        AcceptOne(listener.get(), deadline, handshakes);
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
    for (Handshake& handshake : handshakes) handshake.thread.request_stop();  // of strangers
    handshakes.clear();
    MEDLEY_RETURN_IF_ERROR(status);
    base::MutexLock lock(mutex_);
    return std::move(streams_);
  }

 private:
  static constexpr int kMaxStrangers = 64;

  struct Handshake {
    bool stranger = false;
    std::atomic<bool> done = false;
    std::jthread thread;
  };

  void AcceptOne(int listener, base::SteadyTime deadline, std::list<Handshake>& handshakes) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    Socket socket(::accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0) {  // closed before it was accepted, or there are no descriptors: they come back
      base::SystemClock().SleepFor(base::milliseconds(10), {});
      return;
    }
    const bool stranger = !hosts_.contains(AddressOf(from));
    const auto strangers =
        std::count_if(handshakes.begin(), handshakes.end(), [](const Handshake& one) { return one.stranger; });
    const size_t members = handshakes.size() - static_cast<size_t>(strangers);
    if (stranger ? strangers >= kMaxStrangers : members >= 4 * options_.members.size() + kMaxStrangers) return;
    SetOptions(socket.get());
    // A busy member may take its time; another process may not.
    const base::SteadyTime end = stranger ? std::min(deadline, After(options_.connect_timeout)) : deadline;
    Handshake& handshake = handshakes.emplace_back();
    handshake.stranger = stranger;
    try {
      handshake.thread = std::jthread([this, end, &handshake, fd = socket.get()](const std::stop_token& stop) {
        Take(fd, {end, stop});
        handshake.done = true;
      });
      socket.Release();
    } catch (const std::system_error&) {  // no more threads: the member fails for want of a connection
      handshakes.pop_back();
    }
  }
  void Take(int socket, const Patience& patience) {
    auto stream = start_(socket, false, patience);
    if (!stream.ok()) return;
    Hello hello;
    if (!(*stream)->Read(std::as_writable_bytes(std::span(&hello, 1)), &patience).ok()) return;
    base::MutexLock lock(mutex_);
    const bool expected = hello.nonce == nonce_ && hello.rank < streams_.size() &&
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
  const StartStream& start_;
  const uint64_t nonce_;
  const std::set<std::string> hosts_;  // of the other members
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::unique_ptr<PeerStream>> streams_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<PeerStream>> ConnectTo(const GroupOptions& options, const std::string& address,
                                                      const StartStream& start, const Patience& patience) {
  MEDLEY_ASSIGN_OR_RETURN(const Listener listener, ParseListener(address));
  MEDLEY_ASSIGN_OR_RETURN(Socket socket, Dial(options.address, listener.host, listener.port, patience));
  SetOptions(socket.get());
  MEDLEY_ASSIGN_OR_RETURN(auto stream, start(socket.Release(), true, patience));
  const Hello hello{listener.nonce, static_cast<uint64_t>(options.rank)};
  MEDLEY_RETURN_IF_ERROR(stream->Write(std::as_bytes(std::span(&hello, 1))));
  return stream;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<PeerStream>>> ConnectMesh(const GroupOptions& options, KeyValueStore& store,
                                                                     const std::stop_token& stop) {
  const char* const transport = options.tls.has_value() ? "tls" : "plain";
  const auto key = [&](size_t rank) { return fmt::format("{}/{}/{}", options.name, transport, rank); };
  const auto own = static_cast<size_t>(options.rank);
  MEDLEY_ASSIGN_OR_RETURN(const StartStream start, StarterOf(options));
  uint16_t port = 0;
  MEDLEY_ASSIGN_OR_RETURN(const Socket listener, Listen(options.address, SOMAXCONN, port));
  const uint64_t nonce = base::SystemSeed();
  MEDLEY_RETURN_IF_ERROR(store.Put(key(own), Published(options.address, port, nonce)));
  std::vector<std::string> keys;
  for (size_t rank = 0; rank < options.members.size(); ++rank) keys.push_back(key(rank));
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, store.Get(keys, options.rendezvous_timeout, stop));
  // A rank accepts when it is connected to those below it, which wait for it: the last may wait for all.
  const base::SteadyTime deadline = After(options.connect_timeout * static_cast<int>(options.members.size()));
  std::vector<std::unique_ptr<PeerStream>> smaller(own);
  for (size_t rank = 0; rank < own; ++rank) {
    auto stream = ConnectTo(options, addresses[rank], start, {deadline, stop});
    if (!stream.ok()) return base::Annotate(stream.status(), options.members[rank]);
    smaller[rank] = *std::move(stream);
  }
  std::set<std::string> hosts;
  for (size_t rank = own + 1; rank < addresses.size(); ++rank) {
    MEDLEY_ASSIGN_OR_RETURN(const Listener other, ParseListener(addresses[rank]));
    hosts.insert(other.host);
  }
  auto streams = Acceptor(options, start, nonce, std::move(hosts)).Accept(listener, deadline, stop);
  if (streams.ok()) std::move(smaller.begin(), smaller.end(), streams->begin());
  return streams;
}

}  // namespace medley::worker

#include "common/http2_front/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "common/base/host_port.h"
#include "common/base/status.h"

namespace medley::http2_front {
namespace {

constexpr int kBacklog = 512;
constexpr int kDescriptorsEach = 3;  // of a connection: the client's, both ends of the socket pair
constexpr int kOtherDescriptors = 256;

struct FrontSocket {
  int fd = -1;
  int error = 0;
};

FrontSocket BindAndListen(const addrinfo& address) {
  FrontSocket made;
  made.fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1, off = 0;
  // Ports that closed connections still use; not a port on which another process listens.
  setsockopt(made.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) setsockopt(made.fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (made.fd >= 0 && bind(made.fd, address.ai_addr, address.ai_addrlen) == 0 && listen(made.fd, kBacklog) == 0) {
    return made;
  }
  made.error = errno;
  if (made.fd >= 0) close(made.fd);
  made.fd = -1;
  return made;
}

}  // namespace

absl::StatusOr<Listener> Listen(const std::string& host, int port) {
  const std::string at = base::JoinHostPort(host, port);
  const addrinfo hints{.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  // Where there is no IPv6, all addresses of this machine are those of IPv4.
  std::vector<std::string> hosts = {host};
  if (host == "::") hosts.emplace_back("0.0.0.0");
  FrontSocket made;
  for (const std::string& one : hosts) {
    addrinfo* found = nullptr;
    const int failed = getaddrinfo(one.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (failed != 0) return base::Unavailable("listening on {}: {}", at, gai_strerror(failed));
    made = BindAndListen(*found);
    freeaddrinfo(found);
    if (made.fd >= 0 || (made.error != EAFNOSUPPORT && made.error != EADDRNOTAVAIL)) break;
  }
  if (made.fd < 0) {
    return base::Unavailable("listening on {}: the address is in use or cannot be bound: {}", at,
                             std::generic_category().message(made.error));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(made.fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return Listener{made.fd, ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                                             : reinterpret_cast<const sockaddr_in&>(bound).sin_port)};
}

int AllowedConnections(int wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto needed = static_cast<rlim_t>(wanted) * kDescriptorsEach + kOtherDescriptors;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= needed) return wanted;
  const auto rest = static_cast<int>(limit.rlim_cur) - kOtherDescriptors;
  return std::max(rest, static_cast<int>(limit.rlim_cur) / 2) / kDescriptorsEach;
}

}  // namespace medley::http2_front

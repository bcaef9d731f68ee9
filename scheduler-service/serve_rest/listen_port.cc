#include "scheduler-service/serve_rest/listen_port.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/base/host_port.h"
#include "common/base/status.h"

namespace medley::sched {
namespace {

int PortOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

absl::StatusOr<int> ProbePort(const std::string& host, int port) {
  const std::string where = base::JoinHostPort(host, port);
  if (port < 0 || port > 65535) return base::InvalidArgument("{}: the port must be in 0..65535", where);
  // The HTTP library takes its host up to the first colon.
  if (host.find(':') != std::string::npos) {
    return base::InvalidArgument(
        "{}: the REST listener takes an IPv4 address or the name of a host; name the host that has this IPv6 address",
        where);
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return base::InvalidArgument("listening on {}: {}", where, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &freeaddrinfo);
  const int fd = socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "opening a socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage bound_to{};
  socklen_t size = sizeof bound_to;
  const bool bound = bind(fd, addresses->ai_addr, addresses->ai_addrlen) == 0 && listen(fd, 1) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&bound_to), &size) == 0;
  const int error = errno;
  close(fd);
  if (!bound) return base::ErrnoStatus(error, "listening on " + where);
  return PortOf(bound_to);
}

}  // namespace medley::sched

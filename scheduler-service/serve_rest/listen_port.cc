#include "scheduler-service/serve_rest/listen_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/status.h"

namespace medley::sched {

absl::StatusOr<int> ProbePort(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  const std::string numeric = host == "localhost" ? "127.0.0.1" : host;
  if (port < 0 || port > 65535 || inet_pton(AF_INET, numeric.c_str(), &address.sin_addr) != 1) {
    return base::InvalidArgument("{}:{} is not a valid IPv4 address and port", host, port);
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return base::ErrnoStatus(errno, "opening a socket");
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  close(fd);
  if (!bound) return base::ErrnoStatus(error, fmt::format("listening on {}:{}", host, port));
  return ntohs(address.sin_port);
}

}  // namespace medley::sched

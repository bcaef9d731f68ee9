#include "worker/collective/plain_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/status.h"

namespace medley::worker {
namespace {

class PlainStream final : public PeerStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}
  ~PlainStream() override { ::close(socket_); }

  absl::Status Read(std::span<std::byte> bytes, const Patience* patience) override {
    while (!bytes.empty()) {
      const ssize_t done = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (done == 0) return base::Unavailable("reading: the connection was closed");
      MEDLEY_RETURN_IF_ERROR(Next(done, POLLIN, patience, "reading"));
      if (done > 0) bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return absl::OkStatus();
  }

  absl::Status Write(std::span<const std::byte> bytes, const Patience* patience) override {
    while (!bytes.empty()) {
      const ssize_t done = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      MEDLEY_RETURN_IF_ERROR(Next(done, POLLOUT, patience, "writing"));
      if (done > 0) bytes = bytes.subspan(static_cast<size_t>(done));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) override {
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t done = ::send(socket_, bytes.data() + written, bytes.size() - written, MSG_NOSIGNAL);
      if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (done < 0 && errno != EINTR) return base::Unavailable("writing: {}", std::strerror(errno));
      if (done > 0) written += static_cast<size_t>(done);
    }
    return written;
  }

  void Leave(std::span<const std::byte> farewell, base::SteadyTime deadline) override {
    const Patience patience{deadline, {}};
    (void)Write(farewell, &patience);  // the connection may have broken, and the peer knows that
    Shutdown();
  }

  void Shutdown() override { ::shutdown(socket_, SHUT_RDWR); }

 private:
  // After a call that returned `done`: waits where it would have had to, and tells what broke.
  absl::Status Next(ssize_t done, short events, const Patience* patience, std::string_view what) const {
    if (done >= 0 || errno == EINTR) return absl::OkStatus();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return AwaitSocket(socket_, events, patience, what);
    return base::Unavailable("{}: {}", what, std::strerror(errno));
  }

  const int socket_;
};

}  // namespace

std::unique_ptr<PeerStream> MakePlainStream(int socket) { return std::make_unique<PlainStream>(socket); }

}  // namespace medley::worker

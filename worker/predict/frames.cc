#include "worker/predict/frames.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr size_t kHeaderBytes = sizeof(int32_t) + sizeof(uint32_t);

absl::Status PeerError(ssize_t count) {
  if (count == 0 || errno == EPIPE || errno == ECONNRESET) return base::Unavailable("the process has ended");
  if (errno == EAGAIN || errno == EWOULDBLOCK) return base::DeadlineExceeded("the process does not answer");
  return base::ErrnoStatus(errno, "the socket of the process");
}

absl::Status SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return PeerError(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status ReceiveAll(int socket, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::recv(socket, to, bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return PeerError(count);
    to += count;
    bytes -= static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteFrame(int socket, int32_t code, std::string_view bytes) {
  if (bytes.size() > kMostFrameBytes) {
    return base::ResourceExhausted("a message of {} bytes is larger than {}", bytes.size(), kMostFrameBytes);
  }
  char header[kHeaderBytes];
  const auto size = static_cast<uint32_t>(bytes.size());
  std::memcpy(header, &code, sizeof code);
  std::memcpy(header + sizeof code, &size, sizeof size);
  MEDLEY_RETURN_IF_ERROR(SendAll(socket, {header, sizeof header}));
  return SendAll(socket, bytes);
}

absl::StatusOr<Frame> ReadFrame(int socket) {
  char header[kHeaderBytes];
  MEDLEY_RETURN_IF_ERROR(ReceiveAll(socket, header, sizeof header));
  Frame frame;
  uint32_t size = 0;
  std::memcpy(&frame.code, header, sizeof frame.code);
  std::memcpy(&size, header + sizeof frame.code, sizeof size);
  if (size > kMostFrameBytes) {
    return base::ResourceExhausted("a message of {} bytes is larger than {}", size, kMostFrameBytes);
  }
  frame.bytes.resize(size);
  MEDLEY_RETURN_IF_ERROR(ReceiveAll(socket, frame.bytes.data(), size));
  return frame;
}

}  // namespace medley::worker

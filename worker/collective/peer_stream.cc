#include "worker/collective/peer_stream.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "common/base/status.h"

namespace medley::worker {

absl::Status AwaitSocket(int socket, short events, const Patience& patience, std::string_view what) {
  constexpr int kSliceMilliseconds = 100;  // between looks at the stop token
  while (true) {
    if (patience.stop.stop_requested()) return base::Cancelled("{} was stopped", what);
    if (base::SystemClock().Steady() >= patience.deadline) return base::DeadlineExceeded("{} took too long", what);
    pollfd poll{socket, events, 0};
    const int ready = ::poll(&poll, 1, kSliceMilliseconds);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return base::Unavailable("{}: {}", what, std::strerror(errno));
  }
}

absl::Status AwaitSocket(int socket, short events, const Patience* patience, std::string_view what) {
  if (patience != nullptr) return AwaitSocket(socket, events, *patience, what);
  pollfd poll{socket, events, 0};
  if (::poll(&poll, 1, -1) < 0 && errno != EINTR) return base::Unavailable("{}: {}", what, std::strerror(errno));
  return absl::OkStatus();
}

}  // namespace medley::worker

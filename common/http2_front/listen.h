// The listening socket of a front, and how many connections the process may have. Internal to common/http2_front.
// Thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace medley::http2_front {

struct Listener {
  int fd = -1;  // does not block; the caller's
  int port = 0;
};

// Listens on `host`, an address ("::": all of this machine, also where it has no IPv6), and `port` (0: the system
// chooses). Errors: Unavailable (the address is in use or cannot be bound).
absl::StatusOr<Listener> Listen(const std::string& host, int port);

// As many connections as the process may have descriptors for, at most `wanted`; asks for more descriptors if it may.
int AllowedConnections(int wanted);

}  // namespace medley::http2_front

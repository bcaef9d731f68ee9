// A connection between two processes of a job: bytes in order, both ways.
//
// One thread may read and another write at the same time; any thread may call Shutdown. Errors: Unavailable with the
// cause, DeadlineExceeded, Cancelled. The process must ignore SIGPIPE: OpenSSL writes to a connection that has broken.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <span>
#include <stop_token>
#include <string_view>

#include "common/base/clock.h"

namespace medley::worker {

// How long a call may wait.
struct Patience {
  base::SteadyTime deadline;
  std::stop_token stop;  // looked at every 100 ms
};

// Waits until the socket is ready for `events` of poll(2). Errors, in which `what` names the wait: DeadlineExceeded,
// Cancelled.
absl::Status AwaitSocket(int socket, short events, const Patience& patience, std::string_view what);
// The same without `patience`: until the socket is ready, or broken.
absl::Status AwaitSocket(int socket, short events, const Patience* patience, std::string_view what);

class PeerStream {
 public:
  virtual ~PeerStream() = default;

  // All of `bytes`. Ends with an error when the connection broke or Shutdown was called. Without `patience` it waits
  // until then. OutOfRange: the peer has called Leave; the bytes are those before that. Only TlsStream says so.
  virtual absl::Status Read(std::span<std::byte> bytes, const Patience* patience = nullptr) = 0;
  virtual absl::Status Write(std::span<const std::byte> bytes, const Patience* patience = nullptr) = 0;
  // Writes as many of the first bytes as the connection takes without waiting, and returns their number. If these are
  // not all, the next call that writes must go on with the rest, all of it in one span.
  virtual absl::StatusOr<size_t> WriteSome(std::span<const std::byte> bytes) = 0;
  // Tells the peer that no more will come, then ends as Shutdown does. A stream that has no way of its own to say so
  // writes `farewell`, which the peer must know. No other thread may be writing.
  virtual void Leave(std::span<const std::byte> farewell, base::SteadyTime deadline) = 0;
  // Ends all running and later calls. To the peer the connection is broken.
  virtual void Shutdown() = 0;
};

}  // namespace medley::worker

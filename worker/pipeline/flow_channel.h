// Moves the flows of a program between the devices of one generation: activations, and their gradients back.
//
// Implementations are thread-safe for one sending and one receiving thread at a time.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

// Names a message; unique between two devices.
struct Tag {
  bool evaluation = false;  // of the program that evaluates; `step` counts its chunks
  int flow = 0;             // index into Program::flows
  int64_t step = 0;
  int micro = 0;
  bool operator==(const Tag&) const = default;
  auto operator<=>(const Tag&) const = default;
};

class FlowChannel {
 public:
  virtual ~FlowChannel() = default;
  // `peer`: index of the receiver in Program::devices. The caller may reuse `data` when Send returns. At most one
  // message a (tag, peer). Send may wait for the receiver only while a bounded amount (at least the messages of one
  // step) is unsent. Errors: Cancelled, DeadlineExceeded, Unavailable when the peer is lost.
  virtual absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) = 0;
  // Waits for the message of the sender `peer`. DataLoss when its size is not data.size().
  virtual absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

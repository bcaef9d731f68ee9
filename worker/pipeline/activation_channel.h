// Activations forward and their gradients backward between the replicas of neighbouring stages of
// one generation.
//
// Implementations are thread-safe for one sender and one receiver thread at a time per direction.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

enum class Direction {
  kForward,   // to / from: next / previous stage
  kBackward,  // gradients, to / from: previous / next stage
  kEvaluate,  // activations of an evaluation; step counts its chunks
};

struct Tag {
  Direction direction = Direction::kForward;
  int64_t step = 0;
  int micro = 0;
  bool operator==(const Tag&) const = default;
  auto operator<=>(const Tag&) const = default;
};

class ActivationChannel {
 public:
  virtual ~ActivationChannel() = default;
  // `peer` is the replica's index within the neighbouring stage (kForward, kEvaluate: next stage;
  // kBackward: previous). `data` may be reused when Send returns. At most one message per (tag,
  // peer). Sending may wait for the receiver only when a bounded amount (at least the messages of
  // one step) is under way already. Errors: Cancelled, DeadlineExceeded, Unavailable when the peer
  // is lost.
  virtual absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) = 0;
  // Waits for the message; its size must be data.size(), else DataLoss. `peer` is in the previous
  // stage (kForward, kEvaluate) or the next one (kBackward).
  virtual absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

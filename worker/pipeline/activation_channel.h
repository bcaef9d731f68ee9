// Sends activations to the next stage and their gradients to the previous one, between the replicas of one generation.
//
// Implementations are thread-safe for one sending and one receiving thread at a time per direction.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>

#include "worker/pipeline/wait_limit.h"

namespace medley::worker {

enum class Direction {
  kForward,   // activations, sent to the next stage
  kBackward,  // gradients, sent to the previous stage
  kEvaluate,  // activations of an evaluation, sent to the next stage; `step` counts its chunks
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
  // `peer` is the receiver's replica index in its stage: the next stage for kForward and kEvaluate, the previous one
  // for kBackward. The caller may reuse `data` when Send returns. At most one message per (tag, peer). Send may wait
  // for the receiver only while a bounded amount (at least the messages of one step) is unsent. Errors: Cancelled,
  // DeadlineExceeded, Unavailable when the peer is lost.
  virtual absl::Status Send(const Tag& tag, int peer, std::span<const float> data, const WaitLimit& limit) = 0;
  // Waits for the message. Returns DataLoss when its size is not data.size(). `peer` is the sender's replica index: in
  // the previous stage for kForward and kEvaluate, in the next one for kBackward.
  virtual absl::Status Recv(const Tag& tag, int peer, std::span<float> data, const WaitLimit& limit) = 0;
};

}  // namespace medley::worker

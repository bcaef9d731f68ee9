// Collectives as sequences of messages. Each adds in an order that only the number of ranks and values determines, and
// gives every rank the same bits.
//
// Sources: chapter 3 of the thesis on hierarchical heterogeneous clusters (centralized, ring, recursive doubling,
// linear). With n ranks and m bytes: ring sends 2 m (n-1)/n bytes a rank in 2 (n-1) rounds. Recursive doubling sends m
// bytes in each of log2(n) rounds; where n is no power of two, the ranks beyond it give their values to another rank
// before, and get the sum after. Centralized and linear add in rank order, as one process would.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/model/execution_plan.h"

namespace medley::worker {

// Messages between ranks; those of one tag arrive in the order sent.
class Messages {
 public:
  virtual ~Messages() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Neither waits for what the peer has not sent or received yet, except Receive for its message.
  virtual absl::Status SendTo(int to, std::span<const std::byte> bytes) = 0;
  virtual absl::Status ReceiveFrom(int from, std::span<std::byte> bytes) = 0;
};

// Replaces `values` by their sum over all ranks. kAuto is kRing.
absl::Status SumOver(Messages& messages, std::span<float> values, model::AllreduceAlgorithm algorithm);
absl::Status BroadcastOver(Messages& messages, std::span<std::byte> bytes, int root);
// Returns when every rank has called it.
absl::Status BarrierOver(Messages& messages);

}  // namespace medley::worker

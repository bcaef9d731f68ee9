// A fixed set of processes that exchange spans of memory: point to point, and in collectives. Knows no tensors.
//
// On gloo's TCP transport: a full mesh, one I/O thread a group. Results do not depend on timing: each algorithm adds in
// an order fixed by (ranks, size). After the first error a group is closed for good: a broken pair closes the group,
// which breaks its pairs in turn, so every member learns of a lost one at once and none waits for its timeout.
//
// Thread-safe, except that collectives of one group must be called by one thread a rank, in the same order everywhere.
// Close() may come from any thread and wakes every waiter. The owner keeps the spans alive during a call.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/execution_plan.h"
#include "worker/collective/key_value_store.h"

namespace medley::worker {

struct GroupOptions {
  std::string name;  // distinguishes the groups that share a store
  int rank = 0;
  std::vector<std::string> members;               // names by rank, for messages; the size of the group
  std::string address;                            // IP address of this process, on which the others reach it
  base::milliseconds rendezvous_timeout{120000};  // for the others to come
  base::milliseconds connect_timeout{3000};       // of one connection, once both are there; not stoppable
  base::milliseconds timeout{60000};              // of every wait for a peer
};

class Group {
 public:
  // Returns when connected to every member. Errors: DeadlineExceeded, Unavailable (naming the peer), Cancelled.
  static absl::StatusOr<std::unique_ptr<Group>> Connect(const GroupOptions& options, KeyValueStore& store,
                                                        std::stop_token stop);
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Every rank ends with the same bits: the sum over ranks of `values` (equal sizes).
  // kAuto and kRing: ring; kRecursiveDoubling: gloo's halving-doubling (bcube); kCentralized: gather on rank 0, add in
  // rank order, broadcast; kLinear: the sum walks the ranks from 0 to the last, and back.
  virtual absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) = 0;
  virtual absl::Status Broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual absl::Status Barrier() = 0;

  // Messages from one rank to another on one slot (< 2^56) arrive in the order sent; sizes must match.
  // Send copies `bytes` and returns; it waits only when more than 1024 messages or 256 MiB are under way.
  virtual absl::Status Send(int to, uint64_t slot, std::span<const std::byte> bytes) = 0;
  virtual absl::Status Recv(int from, uint64_t slot, std::span<std::byte> bytes) = 0;
  // Waits until everything sent has left this process.
  virtual absl::Status Flush() = 0;

  // Every running and later call, here and (within a round trip) at the peers, fails with Aborted: `why`. Idempotent.
  virtual void Close(std::string_view why) = 0;
};

}  // namespace medley::worker

// A fixed set of processes that exchange spans of memory, point to point and in collectives. Knows no tensors.
//
// With GroupOptions::tls every connection is encrypted, and only processes of the job take part. Without it these are
// the same connections in plain text (mesh_group.h). Results do not depend on timing, because each algorithm adds in an
// order that only (ranks, size) determines.
//
// A group closes for good at its first error: a broken connection closes the group, which breaks the group's other
// connections. So every member learns at once that one was lost, and none waits for its timeout. A rank that destroys
// an open group leaves in order: only calls that need this rank fail.
//
// Thread-safe, except that each rank must call a group's collectives from one thread, and all ranks in the same order.
// Any thread may call Close(); it wakes every waiter. The caller keeps the spans alive during a call.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/reduce_level.h"
#include "worker/collective/key_value_store.h"
#include "worker/collective/tls_stream.h"

namespace medley::worker {

struct GroupOptions {
  std::string name;  // unique among the groups that share a store
  int rank = 0;
  std::vector<std::string> members;               // names by rank, for error messages; their number is the group's size
  std::string address;                            // IP address at which the others reach this process
  base::milliseconds rendezvous_timeout{120000};  // longest wait for the other members to register in the store
  base::milliseconds connect_timeout{3000};       // for one connection, once both ends have registered; not stoppable
  base::milliseconds timeout{60000};              // longest wait for a peer in any later call
  std::optional<GroupTls> tls;                    // nullopt: plain text
  bool share_memory = false;                      // where all can (shared_memory_group.h); the same on all ranks
  bool may_share_memory = true;                   // false: this rank keeps all from it
};

class Group {
 public:
  // Returns when this process is connected to every member. Errors: DeadlineExceeded, Unavailable (naming the peer),
  // Cancelled.
  static absl::StatusOr<std::unique_ptr<Group>> Connect(const GroupOptions& options, KeyValueStore& store,
                                                        std::stop_token stop);
  virtual ~Group() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replaces `values` with their sum over all ranks; sizes must agree. Every rank gets the same bits. algorithms.h
  // describes the algorithms; kAuto is kRing.
  virtual absl::Status AllreduceSum(std::span<float> values, model::AllreduceAlgorithm algorithm) = 0;
  // The sum over groups of ranks, innermost first. A rank that no group contains must not call it. `root` adds where a
  // level is centralized and its group contains it, else the first of the group. Errors: InvalidArgument for a rank
  // that does not exist.
  virtual absl::Status AllreduceSum(std::span<float> values, std::span<const model::ReduceLevel> levels, int root) = 0;
  // The two halves of a ring (PartOf in algorithms.h says which part is whose): `values` become the sum in this rank's
  // part and are undefined elsewhere; each rank gives its part to all.
  virtual absl::Status ReduceScatterSum(std::span<float> values) = 0;
  virtual absl::Status AllGather(std::span<float> values) = 0;
  virtual absl::Status Broadcast(std::span<std::byte> bytes, int root) = 0;
  virtual absl::Status Barrier() = 0;

  // Messages from one rank to another with the same tag (< 2^56) arrive in the order sent; sizes must match. Send
  // copies `bytes` and returns; it waits only while more than 1024 messages or 256 MiB are unsent. A rank that is sent
  // much should receive in the order sent: what it has not received may hold up what comes after it from the same rank,
  // collectives included, beyond 64 MiB.
  virtual absl::Status Send(int to, uint64_t tag, std::span<const std::byte> bytes) = 0;
  virtual absl::Status Recv(int from, uint64_t tag, std::span<std::byte> bytes) = 0;
  // Waits until all sent messages have left this process.
  virtual absl::Status Flush() = 0;

  // Makes every running and later call fail with Aborted: `why`, here at once and at the peers within a round trip.
  // Idempotent.
  virtual void Close(std::string_view why) = 0;
};

}  // namespace medley::worker

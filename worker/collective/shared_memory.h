// Memory that the processes of one machine share, and how they wait for one another there.
//
// The memory is a memfd: it has no name in any file system, so nothing is left behind whenever a process is killed, and
// its size is sealed, so no process can truncate it under another. Other processes open it as /proc/PID/fd/N, which the
// kernel permits to the same user in the same PID namespace, and recognise it by a random token in it.
//
// A process may be killed, or hostile, at any time: whatever is read here may be anything. No address or length is
// taken from it; counters are only compared.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "common/base/clock.h"

namespace medley::worker {

// What a process needs to find the memory of another. Plain bytes, to be sent.
struct SharedMemoryKey {
  int64_t process = 0;  // 0: there is none
  int64_t descriptor = 0;
  uint64_t token[2] = {};
};

// Starts a thread that opens the memories of other processes from then on: threads that are confined (worker/sandbox)
// may not look into /proc/PID. Call it before the process is confined.
void StartMemoryOpener();

class SharedMemory {
 public:
  enum class State : uint32_t { kOpen, kClosed, kLeft };

  // For `ranks` with `slot_bytes` (a multiple of 64) each, twice. Create is for rank 0, Open for the others. Errors:
  // Unavailable, where memory cannot be had or is not shared.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Create(int ranks, size_t slot_bytes);
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Open(const SharedMemoryKey& key, int rank, int ranks,
                                                            size_t slot_bytes);
  ~SharedMemory();

  const SharedMemoryKey& key() const { return key_; }
  // `half`: 0 or 1.
  std::span<float> Slot(int rank, int half) const;

  // What each rank tells the others.
  std::atomic<uint64_t>& Step(int rank) const { return Board(rank).step; }
  std::atomic<uint64_t>& Count(int rank, int half) const { return Board(rank).count[half]; }
  State StateOf(int rank) const { return static_cast<State>(Board(rank).state.load()); }
  void SetState(State state) { Board(rank_).state.store(static_cast<uint32_t>(state)); }

  // False when the rank's process has ended, or has destroyed its SharedMemory.
  bool Alive(int rank) const;
  // Wait returns when `changes` is no longer Changes(), or after `timeout`, or for no reason.
  uint32_t Changes() const;
  void Wait(uint32_t changes, base::nanoseconds timeout) const;
  void WakeAll() const;

 private:
  // On cache lines of its own.
  struct alignas(128) RankBoard {
    std::atomic<uint64_t> step;
    std::atomic<uint64_t> count[2];  // by half
    std::atomic<uint32_t> state;
  };
  struct alignas(128) Head {
    uint64_t token[2];
    std::atomic<uint32_t> changes;
  };

  SharedMemory(int descriptor, int rank, int ranks, size_t slot_bytes)
      : descriptor_(descriptor), rank_(rank), ranks_(ranks), slot_bytes_(slot_bytes) {}
  absl::Status Map();
  size_t Size() const;
  Head& head() const { return *reinterpret_cast<Head*>(begin_); }
  RankBoard& Board(int rank) const { return reinterpret_cast<RankBoard*>(begin_ + sizeof(Head))[rank]; }

  const int descriptor_;
  const int rank_;
  const int ranks_;
  const size_t slot_bytes_;
  std::byte* begin_ = nullptr;
  SharedMemoryKey key_;
};

}  // namespace medley::worker

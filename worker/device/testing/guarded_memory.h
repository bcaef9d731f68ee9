// Memory of a device for tests that is apart from the host's: pages that no code may touch, except while a kernel or a
// copy has opened them.
//
// Host code that reads or writes a block, in use or freed, ends the process with a sentence about the block (SIGSEGV,
// whose handler this installs). New blocks are filled with bytes that are no numbers (NaN), and the n-th allocation can
// be made to fail. Thread-safe: kernels and copies of several threads follow each other.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "worker/device/testing/copy_counts.h"
#include "worker/device/testing/guarded_streams.h"

namespace medley::worker::device {

// What every byte of a new block is: floats of these bytes are NaN, whole numbers are -1.
inline constexpr int kGuardedPoison = 0xFF;

class GuardedMemory {
 public:
  // The memory of the process's test device: LibTorch allocates for all devices of a type in one place.
  static GuardedMemory& OfProcess();

  // A block of at least one byte, at the beginning of a page. Errors: ResourceExhausted when the allocation is made to
  // fail.
  absl::StatusOr<void*> Allocate(size_t bytes);
  // Later uses of the block end the process.
  void Free(void* block);

  // While one exists, its thread may use the memory, and other threads wait.
  class Opened {
   public:
    explicit Opened(GuardedMemory& memory) : memory_(memory), lock_(memory.mutex_) { memory_.streams_.BeginKernel(); }
    ~Opened();
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    // Opens the block that contains `address`. False: there is none.
    bool Open(const void* address);
    // While the device records: `again` does what the kernel did, in the blocks that this has opened.
    void Record(std::function<absl::Status()> again);

   private:
    GuardedMemory& memory_;
    const std::unique_lock<std::recursive_mutex> lock_;
    std::deque<void*> blocks_;
  };

  // Both count. `device` lies within a block. Errors: Internal outside the block.
  absl::Status CopyIn(std::span<const std::byte> from, void* device);
  absl::Status CopyOut(const void* device, std::span<std::byte> to);
  // A copy on the second stream (guarded_streams.h), which counts when it is given. `from` is read when it
  // is done. Returns its number.
  absl::StatusOr<int64_t> StartCopyIn(std::span<const std::byte> from, void* device,
                                      const GuardedStreams::Moment& after);
  absl::Status KernelsWait(const GuardedStreams::Moment& moment);
  absl::Status Finish(const GuardedStreams::Moment& moment);
  GuardedStreams::Moment Now() const;
  // The order of streams: a seed, and the wait that is left out (GuardedStreams).
  void ResetStreams(uint64_t seed, int64_t left_out_wait = 0);
  int64_t waits() const;
  // Recordings (guarded_recording.cc). As a GPU does, the device does nothing while it records: at the end blocks
  // that were there hold what they held before, and new ones no numbers. These stay until the recording is dropped,
  // also when they are freed. Replay is an error when a block that was used has been freed since.
  absl::Status BeginRecording();
  absl::StatusOr<int64_t> EndRecording();  // its number
  absl::Status Replay(int64_t number);
  void DropRecording(int64_t number);
  bool recording() const;
  // What cannot be recorded, such as a copy to the host: OK unless the device records.
  absl::Status NotRecorded(std::string_view what);
  // Kernels that the host gave, a recording that is done again as one.
  void CountLaunch();
  int64_t launches() const;

  // A copy that a kernel of LibTorch makes.
  void CountIn(size_t bytes);
  void CountOut(size_t bytes);
  CopyCounts counts() const;

  // The `number`-th allocation from now on fails, 1 for the next; 0: none.
  void FailAllocation(int64_t number);
  int64_t allocations() const;  // so far
  // Kernels and copies fail from now on, as after an access outside a GPU's memory; or no longer.
  void SetBroken(bool broken);
  // Internal when broken, or when two streams used a block without an order.
  absl::Status Check() const;

  // What the device says that it has in all; allocations beyond it succeed.
  void SetTotal(int64_t bytes);
  int64_t total() const;
  size_t used() const;  // bytes of blocks
  size_t peak() const;  // the most since ResetPeak
  void ResetPeak();

 private:
  GuardedMemory();
  struct Block {
    size_t bytes = 0;   // asked for
    size_t mapped = 0;  // whole pages
    int opened = 0;
    GuardedStreams::Uses uses;
    int64_t serial = 0;     // of all blocks
    int64_t recording = 0;  // in which it was allocated and which still exists; 0: none
    bool released = false;  // freed, but for the recording
  };
  struct Used {
    void* block = nullptr;
    int64_t serial = 0;
    size_t bytes = 0;
  };
  struct RecordedKernel {
    std::vector<Used> uses;
    std::function<absl::Status()> again;
  };
  struct Recorded {
    int64_t number = 0;
    std::vector<RecordedKernel> kernels;
    std::map<void*, std::vector<std::byte>> before;  // what blocks held, while it is recorded
    absl::Status failed;
  };
  void KeepForRecording(void* address, const Block& block);
  void FreeNow(std::map<void*, Block>::iterator block);
  std::map<void*, Block>::iterator BlockOf(const void* address);
  absl::Status CheckRange(const void* device, size_t bytes);
  void DoCopyIn(std::span<const std::byte> from, void* device);

  mutable std::recursive_mutex mutex_;  // also of kernels, so it is held long
  std::map<void*, Block> blocks_;
  std::deque<std::pair<void*, size_t>> freed_;  // mapped, so that no other memory gets their addresses
  GuardedStreams streams_;
  CopyCounts counts_;
  std::optional<Recorded> recording_;  // under way
  std::map<int64_t, Recorded> recordings_;
  int64_t recorded_ = 0, serials_ = 0, launches_ = 0;
  int64_t allocations_ = 0;
  int64_t fails_ = 0;  // the number of the allocation that fails
  size_t used_ = 0, peak_ = 0;
  int64_t total_ = int64_t{1} << 40;
  bool broken_ = false;
};

}  // namespace medley::worker::device

// Samples of a file in the order in which they are trained, read ahead window by window (sample_order.h): two windows
// are in memory, the one in use and the next one, which threads of the object read meanwhile.
//
//   position   ... | window w: gathered from memory | window w + 1: being read | ...
//
// Only the blocks of these windows and the lists that are asked for are read, each block once a window, and checked by
// its checksum. Nothing is mapped, so that a file that becomes shorter or whose disk fails is an error. Any order of
// requests is right; those that go back, after a rollback, wait for the disk. Thread-safe; one Gather at a time, others
// wait. The destructor joins the threads, each after the block that it reads.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "worker/data/batch.h"
#include "worker/data/sample_file.h"
#include "worker/data/sample_order.h"

namespace medley::worker {

class SampleWindows {
 public:
  // `threads` > 0: the number of threads that read; they start with the first Gather.
  SampleWindows(std::shared_ptr<const SampleFile> file, RowSet set, int threads);
  ~SampleWindows();
  SampleWindows(const SampleWindows&) = delete;
  SampleWindows& operator=(const SampleWindows&) = delete;

  // Whether the file has the blocks of this order.
  bool Serves(const SampleOrder& order) const {
    return order.windows() > 1 && order.block_samples() == file_->block_samples();
  }
  // Copies the samples at `positions` of the order into `batch`, which is resized; of the lists in `parts` (RowParts),
  // others keep their values. Errors: Cancelled; those of SampleFile::ReadBlock.
  absl::Status Gather(const SampleOrder& order, std::span<const int64_t> positions, unsigned parts,
                      const std::stop_token& stop, Batch& batch);
  // A block could not be read. The file is of no use any more.
  bool damaged() const { return damaged_; }
  // Bytes of the windows that are kept in memory.
  int64_t kept_bytes() const;

 private:
  struct Key {
    SampleOrder order;
    int64_t window = 0;
    unsigned parts = 0;
    bool Is(const Key& other) const {
      return window == other.window && parts == other.parts && order.Equals(other.order);
    }
  };
  struct Window {
    std::optional<Key> key;
    int64_t next = 0;     // block of the window that is read next
    int64_t reading = 0;  // blocks that are being read
    int64_t read = 0;     // blocks that are in `samples`
    absl::Status status;
    Batch samples;
  };

  void Run(const std::stop_token& stop);
  Window* Unread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReadBlock(const Key& key, const SampleOrder::Block& block, Batch& samples) const;
  // Waits until the window is in memory, and has its successor read.
  absl::StatusOr<const Window*> Await(const Key& key, const std::stop_token& stop);
  // Makes a window other than `kept` that of `key`, unless one is.
  absl::StatusOr<Window*> Keep(const Key& key, const Window* kept, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<const SampleFile> file_;
  const RowSet set_;
  const size_t thread_count_;
  base::Mutex gathering_;  // held by Gather; taken before mutex_
  std::vector<SampleOrder::Place> places_ ABSL_GUARDED_BY(gathering_);
  std::vector<size_t> by_window_ ABSL_GUARDED_BY(gathering_);
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  // Threads write the samples of blocks that are `reading` without the lock, Gather reads those of a complete window.
  std::array<Window, 2> windows_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> damaged_ = false;
  std::vector<std::jthread> threads_ ABSL_GUARDED_BY(gathering_);  // last: they use the others
};

}  // namespace medley::worker

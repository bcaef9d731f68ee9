// Prepares coming steps in a background thread: batch assembly, then the pull of their rows, one
// step at a time.
//
// Thread-safe. The queue is bounded by kMaxPrefetched. The destructor cancels and joins.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "common/base/mutex.h"
#include "worker/pipeline/batch_assembler.h"

namespace medley::worker {

class Prefetcher {
 public:
  // `sparse` may be null (no tables).
  Prefetcher(BatchAssembler assembler, SparseParameters* sparse);
  ~Prefetcher();

  // A hint; ignored when the lease is known or the queue is full.
  void Add(const StepLease& lease);
  // The prepared step; waits for it, or prepares it now when it was never added. Older steps are
  // dropped.
  absl::StatusOr<std::unique_ptr<PreparedStep>> Take(const StepLease& lease, const WaitLimit& limit);
  // Gives the memory back for the next step.
  void Recycle(std::unique_ptr<PreparedStep> step);
  // Cancels what is under way and forgets everything; returns when the thread is idle.
  void Drop();

 private:
  struct Entry {
    StepLease lease;
    std::optional<absl::StatusOr<std::unique_ptr<PreparedStep>>> result;
  };
  void Run(std::stop_token stop);
  absl::StatusOr<std::unique_ptr<PreparedStep>> Prepare(const StepLease& lease, const WaitLimit& limit);
  std::unique_ptr<PreparedStep> Spare();
  Entry* NextUnprepared();

  BatchAssembler assembler_;  // of whoever holds busy_
  SparseParameters* const sparse_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PreparedStep> spare_ ABSL_GUARDED_BY(mutex_);
  std::stop_source cancel_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: stops and joins before the rest goes
};

}  // namespace medley::worker

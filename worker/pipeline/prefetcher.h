// Prepares coming steps in a background thread, one at a time: assembles the batch, then pulls its rows: first as they
// are, then those that the step before, when it is applied, has changed.
//
// Thread-safe. The queue holds at most kMaxPrefetched steps. The destructor cancels and joins the thread.
#pragma once

#include <absl/status/statusor.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>

#include "common/base/mutex.h"
#include "worker/pipeline/batch_assembler.h"

namespace medley::worker {

class Prefetcher {
 public:
  static constexpr int kMaxPrefetched = 2;

  // What is done with rows that were pulled ahead, in the background thread: they may not be the newest.
  using Stage = std::function<absl::Status(const PreparedStep&)>;
  // `sparse` is null when the stage has no tables; `stage` is unset where no block takes rows ahead.
  Prefetcher(BatchAssembler assembler, SparseParameters* sparse, base::Clock& clock, Stage stage = {});
  ~Prefetcher();

  // Asks for a step to be prepared, with the rows after step `version`; ignored when it is already queued or the queue
  // is full.
  void Add(const StepLease& lease, int64_t version);
  // Waits for the prepared step, or prepares it now when it was never added. Drops older steps. `waited` of the step is
  // the part of the wait that ended when its samples were there.
  absl::StatusOr<std::unique_ptr<PreparedStep>> Take(const StepLease& lease, int64_t version, const WaitLimit& limit);
  // Returns the step's memory, to be reused for the next step.
  void Recycle(std::unique_ptr<PreparedStep> step);
  // Cancels the running preparation and drops all steps; returns when the thread is idle.
  void Drop();

 private:
  struct Entry {
    StepLease lease;
    int64_t version = 0;
    std::optional<absl::StatusOr<std::unique_ptr<PreparedStep>>> result;
  };
  void Run(std::stop_token stop);
  absl::StatusOr<std::unique_ptr<PreparedStep>> Prepare(const StepLease& lease, int64_t version,
                                                        const WaitLimit& limit);
  std::unique_ptr<PreparedStep> Spare();
  Entry* NextUnprepared();

  BatchAssembler assembler_;  // only for the thread that has set busy_
  SparseParameters* const sparse_;
  base::Clock& clock_;
  const Stage stage_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PreparedStep> spare_ ABSL_GUARDED_BY(mutex_);
  std::stop_source cancel_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last member: stops and joins before the others are destroyed
};

}  // namespace medley::worker

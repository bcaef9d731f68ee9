// Rebuilds the rows of a lost server: takes the pushes that trainers have kept, each trainer's in the order of steps,
// and applies every step when it has those of all. So each step is the same update as before, and its rows have the
// same bits.
//
// The store starts with the rows of the step before the first. Thread-safe: one thread takes the pushes of one trainer.
// Every wait is bounded by its limit. The first error ends all waits.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "worker/ps/row_store.h"
#include "worker/ps/shard_generation.h"

namespace medley::worker {

class PushReplay {
 public:
  PushReplay(std::shared_ptr<RowStore> store, int64_t to_step);

  struct Push {
    int64_t step = 0;
    int trainer = 0;
    int trainers = 1;  // that pushed in this step; all of them must say the same
    int64_t samples = 0;
    PushPart part;
    std::vector<Gradients> gradients;
  };
  // Waits until the step before is applied. A push of a step that is applied already changes nothing. Errors:
  // InvalidArgument (a step beyond to_step, pushes that do not match), Cancelled, DeadlineExceeded.
  absl::Status Take(Push push, const WaitLimit& limit);
  // Waits until to_step is applied. Errors: that of a Take that failed because of its push; Cancelled;
  // DeadlineExceeded, which says what was missing.
  absl::Status Await(const WaitLimit& limit);
  // Ends all waits with Cancelled.
  void Stop();

 private:
  absl::Status TakeNext(Push push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Missing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<RowStore> store_;
  const int64_t to_step_;
  base::Mutex mutex_;
  base::CondVar changed_;
  int64_t applied_ ABSL_GUARDED_BY(mutex_);
  int trainers_ ABSL_GUARDED_BY(mutex_) = 0;                             // of collecting_
  std::unique_ptr<ShardGeneration> collecting_ ABSL_GUARDED_BY(mutex_);  // steps of so many trainers
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;                            // the last step of which a push came
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker

// One generation's access to a RowStore: delays pulls, collects pushes and applies complete steps.
//
// Steps are synchronous. A pull for step s is ready when update s-1 is applied. Update s is applied when every trainer
// of the tables' stages has pushed it and the coordinator has leased it (Allow); gradients are added in trainer order.
// Push is idempotent for each (step, trainer, part).
// Thread-safe, and no call waits: a pull that is not ready keeps a callback instead of a thread. Every callback is
// called exactly once, without a lock, in the thread that decides its result: that of Pull itself, of the Push or Allow
// that applies the step, of Cancel, of Expire, or of Close, after which a generation refuses every call (fencing).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "worker/ps/row_store.h"

namespace medley::worker {

struct ShardGenerationOptions {
  int64_t generation = 0;
  int trainers = 1;                           // trainers of ranks 0 .. trainers-1 push every step
  base::nanoseconds wait{base::seconds(60)};  // longest wait of a pull
  // Called after every update, in order, under this generation's lock; never after Close has returned.
  std::function<void(int64_t step)> on_applied;
};

// The row gradients of one table from one trainer for one step.
struct Gradients {
  int table = 0;
  std::span<const uint64_t> keys;
  std::span<const float> values;       // keys x columns
  std::shared_ptr<const void> keeper;  // of keys and values

  // Gradients that keep these vectors.
  static Gradients Of(int table, std::vector<uint64_t> keys, std::vector<float> values);
};

// A trainer may divide its push among several messages.
struct PushPart {
  int index = 0;
  int count = 1;
};

class ShardGeneration {
 public:
  using Done = std::function<void(absl::Status)>;
  using Answers = std::vector<std::pair<Done, absl::Status>>;  // callbacks and what they are to be called with
  static constexpr size_t kMaxWaiting = 65536;
  static constexpr int kMaxParts = 1 << 20;

  ShardGeneration(ShardGenerationOptions options, std::shared_ptr<RowStore> store);

  int64_t generation() const { return options_.generation; }
  RowStore& store() { return *store_; }
  const std::shared_ptr<RowStore>& shared_store() const { return store_; }

  // Calls `done` when step - 1 is applied, or with the error: Aborted (closed), DeadlineExceeded (`deadline` or
  // options.wait after `now`), Cancelled, FailedPrecondition (a later step is applied), ResourceExhausted. Returns the
  // number of the waiting pull for Cancel, or 0 when `done` has been called already.
  int64_t Pull(int64_t step, base::SteadyTime now, base::SteadyTime deadline, Done done);
  // For a pull ahead of `step`: the step that the store has applied, or -1 where its rows may not be read yet, because
  // that is neither step - 1 nor step - 2. Errors: Aborted (closed).
  absl::StatusOr<int64_t> StepAhead(int64_t step) const;
  // Ends a waiting pull with Cancelled; does nothing when it has ended.
  void Cancel(int64_t pull);
  // Ends the waiting pulls whose deadline is `now` or before it. The owner calls it from time to time.
  void Expire(base::SteadyTime now);
  size_t WaitingPulls() const;

  // Errors: FailedPrecondition for a step that is not the next, InvalidArgument for a trainer beyond the generation's
  // and for parts that do not match. With `later`, Push hands out the callbacks of the pulls that it makes ready and
  // does not call them: the caller passes them to Call soon, when it has replied to its own caller.
  absl::Status Push(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples, PushPart part = {},
                    Answers* later = nullptr);
  static void Call(Answers answers);

  // Allows updates up to `step`. A checkpoint of step s is taken before s + 1 is allowed.
  absl::Status Allow(int64_t step);

  // When Close returns, no update runs or will run. Drops pushes that wait for those of other trainers.
  void Close();

 private:
  struct Waiting {
    int64_t step = 0;
    base::SteadyTime deadline;
    Done done;
  };
  // What a trainer has pushed of the step pushing_.
  struct Pushed {
    int parts = 1;
    std::map<int, std::vector<Gradients>> received;  // by index of the part
  };

  // Whether a pull for `step` can be answered when the store has applied step `at`. Unavailable: not yet.
  absl::Status Readiness(int64_t step, int64_t at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Collect(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples, PushPart part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applies the pushed step if it is complete and allowed.
  absl::Status ApplyComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsComplete() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the pulls that have a result now.
  Answers TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardGenerationOptions options_;
  const std::shared_ptr<RowStore> store_;
  mutable base::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pushing_ ABSL_GUARDED_BY(mutex_) = 0;  // the step of pushed_
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Pushed> pushed_ ABSL_GUARDED_BY(mutex_);  // by trainer
  int64_t last_pull_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by number of the pull
};

}  // namespace medley::worker

// One generation's access to a RowStore: delays pulls, collects pushes and applies complete steps.
//
// Steps are synchronous. A pull for step s waits until update s-1 is applied. Update s is applied when every trainer of
// the tables' stage has pushed it and the coordinator has leased it (Allow); gradients are added in trainer order. Push
// is idempotent for each (step, trainer).
// Thread-safe. Close() wakes every waiter; a closed generation refuses every call (fencing).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
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
  std::vector<uint64_t> keys;
  std::vector<float> values;
};

class ShardGeneration {
 public:
  ShardGeneration(ShardGenerationOptions options, std::shared_ptr<RowStore> store);

  int64_t generation() const { return options_.generation; }
  RowStore& store() { return *store_; }
  const std::shared_ptr<RowStore>& shared_store() const { return store_; }

  // Waits until step - 1 is applied, at most options.wait from `now`. `stop` is requested when the caller's RPC is
  // cancelled. Errors: Aborted (closed), DeadlineExceeded, Cancelled, FailedPrecondition (a later step is applied).
  absl::Status WaitForPull(int64_t step, std::stop_token stop, base::SteadyTime now);
  // Errors: FailedPrecondition for a step that is not the next, InvalidArgument for a trainer beyond the generation's.
  absl::Status Push(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples);

  // Allows updates up to `step`. A checkpoint of step s is taken before s + 1 is allowed.
  absl::Status Allow(int64_t step);

  // When Close returns, no update runs or will run. Drops pushes that wait for those of other trainers.
  void Close();

 private:
  // Applies the pushed step if it is complete and allowed.
  absl::Status ApplyComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardGenerationOptions options_;
  const std::shared_ptr<RowStore> store_;
  std::stop_source closed_;
  base::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pushing_ ABSL_GUARDED_BY(mutex_) = 0;  // the step of pushed_
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::vector<Gradients>> pushed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker

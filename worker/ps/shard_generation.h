// One generation's use of a RowStore: who may ask, and when a step is complete.
//
// Synchronous steps: Pull(s) answers when update s-1 is applied; update s is applied once every trainer of the tables'
// stage has pushed and the coordinator has leased s (Allow), with gradients added in trainer order. Push is idempotent
// by (step, trainer).
// Thread-safe. Close() wakes every waiter; a closed generation refuses everything (fencing).
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
  int trainers = 1;                           // ranks 0 .. trainers-1 push every step
  base::nanoseconds wait{base::seconds(60)};  // longest wait of a pull
  // Called after every update, in order, under this generation's lock; not after Close has returned.
  std::function<void(int64_t step)> on_applied;
};

// Gradients of one trainer for one step.
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

  // Weights of `keys`, appended to `out`. `stop` is the caller's (its call was cancelled).
  absl::Status WaitForPull(int64_t step, std::stop_token stop, base::SteadyTime now);
  // Errors: FailedPrecondition for a step that is not the next, InvalidArgument for a trainer beyond the generation's.
  absl::Status Push(int64_t step, int trainer, std::vector<Gradients> gradients, int64_t samples);

  // Updates up to `step` may be applied. A checkpoint of s is taken before s + 1 is allowed.
  absl::Status Allow(int64_t step);

  // No update runs or will run any more; pushes that wait for others are forgotten.
  void Close();

 private:
  // Applies the step that is complete and allowed, if any.
  absl::Status ApplyComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ShardGenerationOptions options_;
  const std::shared_ptr<RowStore> store_;
  std::stop_source closed_;
  base::Mutex mutex_;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t allowed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t pushing_ ABSL_GUARDED_BY(mutex_) = 0;  // step of pushed_
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, std::vector<Gradients>> pushed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker

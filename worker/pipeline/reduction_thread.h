// Reduces the gradients of blocks in a background thread, one after the other, while the backward pass goes on.
//
// One thread calls Start and Wait. The destructor joins the thread; end a running reduction by its limit before.
#pragma once

#include <absl/status/status.h>

#include <deque>
#include <map>
#include <span>
#include <thread>

#include "common/base/mutex.h"
#include "worker/pipeline/dense_reducer.h"

namespace medley::worker {

class ReductionThread {
 public:
  // `reducer` is called by the thread only.
  explicit ReductionThread(DenseReducer& reducer);
  ~ReductionThread();

  // `values` must not be touched until Wait returns. At most one reduction a block at a time.
  void Start(int64_t step, int block, const program::Group& group, std::span<float> values, WaitLimit limit);
  // Returns the status of the block's reduction, when it has ended. After an error, those behind it have it too.
  absl::Status Wait(int block);
  // Waits for all; forgets them and the error.
  void Reset();

 private:
  struct Work {
    int64_t step = 0;
    int block = 0;
    const program::Group* group = nullptr;
    std::span<float> values;
    WaitLimit limit;
  };
  void Run(std::stop_token stop);

  DenseReducer& reducer_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Work> queue_ ABSL_GUARDED_BY(mutex_);  // the first is running
  std::map<int, absl::Status> done_ ABSL_GUARDED_BY(mutex_);
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last member
};

}  // namespace medley::worker

// Reduces the gradients of some blocks in a background thread, one after the other, while the backward pass goes on.
//
// One thread calls Start and Wait. The destructor joins the thread; end a running reduction by its limit before.
#pragma once

#include <absl/status/status.h>

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "common/base/mutex.h"
#include "worker/pipeline/dense_reducer.h"

namespace medley::worker {

class ReductionThread {
 public:
  // `reducer` is called by the thread, and may be by others of these.
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

// The threads of one device: the reductions of one server follow each other, and so do those without a server.
class ReductionThreads {
 public:
  // `blocks`: of the device. `program` and `reducer` must outlive it.
  ReductionThreads(const program::Program& program, std::span<const int> blocks, DenseReducer& reducer);
  // `block` must be reduced.
  ReductionThread& Of(int block) { return *threads_.at(NumberOf(block)); }
  // For all threads.
  void Reset();

 private:
  // With more servers than kMost some share a thread, the same ones on all devices.
  static constexpr int kMost = 16;
  int NumberOf(int block) const { return (program_.ServerOf(block) + 1) % kMost; }

  const program::Program& program_;
  std::map<int, std::unique_ptr<ReductionThread>> threads_;
};

}  // namespace medley::worker

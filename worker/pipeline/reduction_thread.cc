#include "worker/pipeline/reduction_thread.h"

#include <utility>

namespace medley::worker {

ReductionThread::ReductionThread(DenseReducer& reducer)
    : reducer_(reducer), thread_([this](std::stop_token stop) { Run(stop); }) {}

ReductionThread::~ReductionThread() { thread_.request_stop(); }

void ReductionThread::Start(int64_t step, int block, const program::Group& group, std::span<float> values,
                            WaitLimit limit) {
  base::MutexLock lock(mutex_);
  done_.erase(block);
  queue_.push_back({step, block, &group, values, std::move(limit)});
  changed_.NotifyAll();
}

absl::Status ReductionThread::Wait(int block) {
  base::MutexLock lock(mutex_);
  // Each reduction is bounded by its own limit.
  changed_.Wait(mutex_, {}, [&] { return done_.contains(block); });
  return done_.at(block);
}

void ReductionThread::Reset() {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, {}, [&] { return queue_.empty(); });
  done_.clear();
  failed_ = absl::OkStatus();
}

ReductionThreads::ReductionThreads(const program::Program& program, std::span<const int> blocks, DenseReducer& reducer)
    : program_(program) {
  for (const int block : blocks) {
    if (program.blocks[static_cast<size_t>(block)].group < 0) continue;
    std::unique_ptr<ReductionThread>& thread = threads_[NumberOf(block)];
    if (thread == nullptr) thread = std::make_unique<ReductionThread>(reducer);
  }
}

void ReductionThreads::Reset() {
  for (const auto& [number, thread] : threads_) thread->Reset();
}

void ReductionThread::Run(std::stop_token stop) {
  base::MutexLock lock(mutex_);
  while (changed_.Wait(mutex_, stop, [this] { return !queue_.empty(); })) {
    const Work work = queue_.front();
    absl::Status status = failed_;
    if (status.ok()) {
      mutex_.unlock();
      status = reducer_.SumAll(work.step, work.block, *work.group, work.values, work.limit);
      mutex_.lock();
    }
    failed_ = status;
    queue_.pop_front();
    done_[work.block] = std::move(status);
    changed_.NotifyAll();
  }
}

}  // namespace medley::worker

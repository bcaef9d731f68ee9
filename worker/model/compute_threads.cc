#include "worker/model/compute_threads.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace medley::worker {
namespace {

constexpr int64_t kMinOperations = 2'000'000;  // for one thread: about 0.1 ms, many times what waking it costs

}  // namespace

class ComputeThreads::Rep {
 public:
  explicit Rep(int threads) {
    for (int t = 1; t < threads; ++t) {
      threads_.emplace_back([this, t](std::stop_token stop) { Run(static_cast<size_t>(t), stop); });
    }
  }

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void ForEach(int64_t rows, int64_t operations, Work work, int64_t together) {
    const int64_t blocks = (rows + together - 1) / together;
    const int64_t useful = std::min({int64_t{size()}, blocks, rows * operations / kMinOperations});
    if (useful <= 1) return work(0, rows);
    {
      base::MutexLock lock(mutex_);
      ranges_ = static_cast<size_t>(useful);
      rows_ = rows;
      together_ = together;
      work_ = &work;
      error_ = nullptr;
      running_ = ranges_ - 1;
      ++call_;
      start_.NotifyAll();
    }
    std::exception_ptr error = RunRange(0, {rows, together}, ranges_, work);
    base::MutexLock lock(mutex_);
    end_.Wait(mutex_, {}, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return running_ == 0; });
    work_ = nullptr;
    if (error == nullptr) error = error_;
    if (error != nullptr) std::rethrow_exception(error);
  }

 private:
  struct Rows {
    int64_t count = 0;
    int64_t together = 1;
  };
  static std::exception_ptr RunRange(size_t range, Rows rows, size_t ranges, Work work) {
    const int64_t blocks = (rows.count + rows.together - 1) / rows.together;
    const auto cut = [&](size_t i) {
      return std::min(rows.count, blocks * static_cast<int64_t>(i) / static_cast<int64_t>(ranges) * rows.together);
    };
    try {
      work(cut(range), cut(range + 1));
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  void Run(size_t mine, std::stop_token stop) {
    uint64_t done = 0;
    base::MutexLock lock(mutex_);
    const auto called = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return call_ != done; };
    while (start_.Wait(mutex_, stop, called)) {
      done = call_;
      if (mine >= ranges_) continue;
      const Work work = *work_;
      const Rows rows{rows_, together_};
      const size_t ranges = ranges_;
      mutex_.unlock();
      const std::exception_ptr error = RunRange(mine, rows, ranges, work);
      mutex_.lock();
      if (error_ == nullptr) error_ = error;
      if (--running_ == 0) end_.NotifyAll();
    }
  }

  base::Mutex mutex_;
  base::CondVar start_;
  base::CondVar end_;
  uint64_t call_ ABSL_GUARDED_BY(mutex_) = 0;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int64_t rows_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t together_ ABSL_GUARDED_BY(mutex_) = 1;
  size_t ranges_ = 0;  // written under mutex_ by the calling thread, which reads it without
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last member: stops and joins before the others are destroyed
};

ComputeThreads::ComputeThreads(int threads) : rep_(std::make_unique<Rep>(std::max(1, threads))) {}
ComputeThreads::~ComputeThreads() = default;
int ComputeThreads::size() const { return rep_->size(); }
void ComputeThreads::ForEach(int64_t rows, int64_t operations, Work work, int64_t together) {
  rep_->ForEach(rows, operations, work, together);
}

}  // namespace medley::worker

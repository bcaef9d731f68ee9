// std::mutex with absl's thread-safety annotations (clang -Wthread-safety checks them).
//
// We do not use absl::Mutex: Debian's library is not built with TSan, which then reports races that do not exist.
//
//   base::Mutex mutex_;
//   int count_ ABSL_GUARDED_BY(mutex_) = 0;
#pragma once

#include <absl/base/thread_annotations.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace medley::base {

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// A condition variable whose waits always end. The caller of a wait holds `mutex`. A wait returns the value of
// `predicate` at its end: true if it holds, false after a stop request or the deadline.
class CondVar {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  template <typename Predicate>
  bool WaitUntil(Mutex& mutex, std::stop_token stop, Deadline deadline,
                 Predicate predicate) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_until(mutex, stop, deadline, predicate);
  }
  template <typename Predicate>
  bool WaitFor(Mutex& mutex, std::stop_token stop, std::chrono::nanoseconds timeout,
               Predicate predicate) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait_for(mutex, stop, timeout, predicate);
  }
  // Ends only when `predicate` holds or a stop is requested.
  template <typename Predicate>
  bool Wait(Mutex& mutex, std::stop_token stop, Predicate predicate) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return condition_.wait(mutex, stop, predicate);
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace medley::base

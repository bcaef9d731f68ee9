// One stream of a member: a bounded queue of orders that can be closed. Thread-safe; the stream's handler and the
// engine share it.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "medley/job/v1/coordinator.pb.h"

namespace medley::worker {

class Session {
 public:
  static constexpr size_t kMaxQueue = 4096;

  // `cancel` ends the stream from outside; it is not called after Detach.
  Session(std::string name, std::string process, std::function<void()> cancel)
      : member(std::move(name)), instance(std::move(process)), cancel_(std::move(cancel)) {}

  const std::string member;
  const std::string instance;

  // Returns false when the queue is full or closed.
  bool Push(job::v1::SessionResponse message) {
    base::MutexLock lock(mutex_);
    if (closed_ || queue_.size() >= kMaxQueue) return false;
    queue_.push_back(std::move(message));
    changed_.NotifyAll();
    return true;
  }
  // Waits for the next order; returns nullopt when the queue is closed and empty, or the wait was stopped.
  std::optional<job::v1::SessionResponse> Pop(std::stop_token stop) {
    base::MutexLock lock(mutex_);
    changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return closed_ || !queue_.empty(); });
    if (queue_.empty() || stop.stop_requested()) return std::nullopt;
    job::v1::SessionResponse message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }
  // Ends the stream at once.
  void Cancel() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    if (cancel_) cancel_();
    changed_.NotifyAll();
  }
  // Called by the stream's handler before it returns.
  void Detach() {
    base::MutexLock lock(mutex_);
    closed_ = true;
    cancel_ = nullptr;
    changed_.NotifyAll();
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<job::v1::SessionResponse> queue_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> cancel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::worker

// A handler of an informer, with its thread and its buffer. Internal to kube/cache. Thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <thread>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/informer.h"

namespace medley::kube {

class Informer::Listener {
 public:
  struct Notification {
    enum class Type { kAdd, kUpdate, kDelete, kSynced } type;
    ObjectPtr before;   // for kUpdate
    ObjectPtr now;      // for kDelete: the last state
    bool flag = false;  // kAdd: `initial`; kDelete: `unknown`
  };

  // `resync` 0: never.
  Listener(EventHandler handler, base::nanoseconds resync, base::SteadyTime now)
      : handler_(std::move(handler)), resync_(resync), next_resync_(now + resync) {
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }

  // Never blocks. The buffer is unbounded, as in client-go, so a handler must only enqueue work.
  void Push(Notification notification) {
    base::MutexLock lock(mutex_);
    buffer_.push_back(std::move(notification));
    changed_.NotifyOne();
  }
  bool Synced() const {
    base::MutexLock lock(mutex_);
    return synced_;
  }

  // When the next resync is due; nullopt: never. Call the next four functions with the informer's mutex held.
  std::optional<base::SteadyTime> NextResync() const {
    if (resync_ == base::nanoseconds(0)) return std::nullopt;
    return next_resync_;
  }
  void MarkDue(base::SteadyTime now) {
    if (resync_ == base::nanoseconds(0) || next_resync_ > now) return;
    due_ = true;
    next_resync_ = now + resync_;
  }
  bool due() const { return due_; }
  void ClearDue() { due_ = false; }

 private:
  void Run(std::stop_token stop) {
    while (true) {
      std::deque<Notification> batch;
      {
        base::MutexLock lock(mutex_);
        changed_.Wait(mutex_, stop, [&] { return !buffer_.empty(); });
        if (stop.stop_requested()) return;
        batch.swap(buffer_);
      }
      for (const Notification& notification : batch) {
        if (stop.stop_requested()) return;
        Call(notification);
      }
    }
  }

  // An exception ends the process, as a panic does in client-go.
  void Call(const Notification& n) noexcept {
    using Type = Notification::Type;
    if (n.type == Type::kAdd && handler_.on_add) handler_.on_add(n.now, n.flag);
    if (n.type == Type::kUpdate && handler_.on_update) handler_.on_update(n.before, n.now);
    if (n.type == Type::kDelete && handler_.on_delete) handler_.on_delete(n.now, n.flag);
    if (n.type == Type::kSynced) {
      base::MutexLock lock(mutex_);
      synced_ = true;
    }
  }

  const EventHandler handler_;
  const base::nanoseconds resync_;
  base::SteadyTime next_resync_;
  bool due_ = false;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Notification> buffer_ ABSL_GUARDED_BY(mutex_);
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: stops and joins first
};

}  // namespace medley::kube

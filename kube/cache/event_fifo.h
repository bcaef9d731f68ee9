// A queue of the reflector's events, in order and without merging (client-go's RealFIFO with atomic Replace).
//
// It has one consumer. When the queue is full, the producer waits, so a slow consumer slows the watch down instead of
// using unbounded memory. Thread-safe.
#pragma once

#include <deque>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "kube/object.h"

namespace medley::kube {

struct FifoEvent {
  enum class Type { kAdded, kUpdated, kDeleted, kReplaced, kSync, kBookmark };
  Type type = Type::kAdded;
  ObjectPtr object;                // for kAdded, kUpdated and kDeleted
  std::vector<ObjectPtr> objects;  // for kReplaced: the whole list
  std::string resource_version;    // after this event
};

class EventFifo {
 public:
  explicit EventFifo(size_t capacity = 16384) : capacity_(capacity) {}

  // Waits for space. Returns false, without taking the event, if the queue is closed or `stop` is requested.
  bool Push(FifoEvent event, std::stop_token stop);
  // Waits for events and returns those of at most 1000 distinct keys; a kReplaced or kSync event comes alone. Returns
  // an empty batch if the queue is closed and empty, or `stop` is requested. Call Processed after each non-empty batch.
  std::vector<FifoEvent> Pop(std::stop_token stop);
  void Processed(const std::vector<FifoEvent>& batch);
  // Wakes all waiting threads. Queued events can still be popped.
  void Close();
  size_t Size() const;

  // True when the first kReplaced has been popped and processed.
  bool HasSynced() const;

 private:
  static constexpr size_t kBatchKeys = 1000;

  const size_t capacity_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<FifoEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace medley::kube

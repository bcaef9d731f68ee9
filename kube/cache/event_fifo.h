// What the reflector saw, in order, none merged (client-go's RealFIFO with atomic Replace).
//
// One consumer. A full queue makes the producer wait, so a slow consumer slows the watch down instead of
// taking memory. Thread-safe.
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
  std::vector<ObjectPtr> objects;  // for kReplaced: all there is
  std::string resource_version;    // after this event
};

class EventFifo {
 public:
  explicit EventFifo(size_t capacity = 16384) : capacity_(capacity) {}

  // Waits for room; false when closed or stopped (the event is then not taken).
  bool Push(FifoEvent event, std::stop_token stop);
  // At least one event and at most those of 1000 distinct keys, or nothing: closed and empty, or stopped.
  // kReplaced and kSync come alone. Call Processed after each non-empty batch.
  std::vector<FifoEvent> Pop(std::stop_token stop);
  void Processed(const std::vector<FifoEvent>& batch);
  // Wakes everyone; what is queued can still be popped.
  void Close();
  size_t Size() const;

  // The first kReplaced was popped and processed.
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

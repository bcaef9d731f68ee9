#include "kube/cache/event_fifo.h"

#include <algorithm>
#include <set>

namespace medley::kube {
namespace {

bool ComesAlone(const FifoEvent& event) {
  return event.type == FifoEvent::Type::kReplaced || event.type == FifoEvent::Type::kSync;
}

}  // namespace

bool EventFifo::Push(FifoEvent event, std::stop_token stop) {
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, stop, [&] { return closed_ || events_.size() < capacity_; });
  if (closed_ || stop.stop_requested()) return false;
  events_.push_back(std::move(event));
  changed_.NotifyAll();
  return true;
}

std::vector<FifoEvent> EventFifo::Pop(std::stop_token stop) {
  std::vector<FifoEvent> batch;
  base::MutexLock lock(mutex_);
  changed_.Wait(mutex_, stop, [&] { return closed_ || !events_.empty(); });
  if (stop.stop_requested()) return batch;
  std::set<Key> keys;
  while (!events_.empty()) {
    FifoEvent& next = events_.front();
    if (ComesAlone(next) && !batch.empty()) break;
    if (next.object != nullptr) {
      Key key = next.object->key();
      if (keys.size() == kBatchKeys && !keys.contains(key)) break;
      keys.insert(std::move(key));
    }
    batch.push_back(std::move(next));
    events_.pop_front();
    if (ComesAlone(batch.back())) break;
  }
  changed_.NotifyAll();
  return batch;
}

void EventFifo::Processed(const std::vector<FifoEvent>& batch) {
  base::MutexLock lock(mutex_);
  synced_ = synced_ || std::any_of(batch.begin(), batch.end(),
                                   [](const FifoEvent& event) { return event.type == FifoEvent::Type::kReplaced; });
}

void EventFifo::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

size_t EventFifo::Size() const {
  base::MutexLock lock(mutex_);
  return events_.size();
}

bool EventFifo::HasSynced() const {
  base::MutexLock lock(mutex_);
  return synced_;
}

}  // namespace medley::kube

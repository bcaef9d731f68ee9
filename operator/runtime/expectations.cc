#include "operator/runtime/expectations.h"

#include <algorithm>

namespace medley::ops {

Expectations::Expectations(base::Clock& clock, base::nanoseconds timeout) : clock_(clock), timeout_(timeout) {}

void Expectations::ExpectCreations(const kube::Key& parent, int count) {
  if (count <= 0) return;
  base::MutexLock lock(mutex_);
  Open& open = open_[parent];
  open.creations += count;
  open.since = clock_.Steady();
}

void Expectations::CreationObserved(const kube::Key& parent) {
  base::MutexLock lock(mutex_);
  const auto it = open_.find(parent);
  if (it == open_.end()) return;
  if (--it->second.creations <= 0) open_.erase(it);
}

bool Expectations::Satisfied(const kube::Key& parent) const {
  base::MutexLock lock(mutex_);
  const auto it = open_.find(parent);
  return it == open_.end() || clock_.Steady() - it->second.since > timeout_;
}

void Expectations::Forget(const kube::Key& parent) {
  base::MutexLock lock(mutex_);
  open_.erase(parent);
}

void Expectations::ObserveAdd(const kube::Key& parent, const kube::Object& child) {
  if (!child.deleting()) CreationObserved(parent);
}

SlowStartResult SlowStart(int count, const std::function<absl::Status(int)>& create, int burst) {
  SlowStartResult result;
  const int total = std::min(count, burst);
  for (int batch = 1; result.tried < total && result.status.ok(); batch *= 2) {
    const int end = std::min(total, result.tried + batch);
    for (; result.tried < end; ++result.tried) {
      absl::Status status = create(result.tried);
      if (status.ok()) {
        ++result.succeeded;
      } else if (result.status.ok()) {
        result.status = std::move(status);
      }
    }
  }
  return result;
}

}  // namespace medley::ops

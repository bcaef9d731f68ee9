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

void Expectations::ExpectDeletion(const kube::Key& parent, const std::string& child_uid) {
  base::MutexLock lock(mutex_);
  Open& open = open_[parent];
  open.deletions.insert(child_uid);
  open.since = clock_.Steady();
}

void Expectations::CreationObserved(const kube::Key& parent) {
  base::MutexLock lock(mutex_);
  const auto it = open_.find(parent);
  if (it == open_.end()) return;
  it->second.creations = std::max(0, it->second.creations - 1);
  if (it->second.creations == 0 && it->second.deletions.empty()) open_.erase(it);
}

void Expectations::DeletionObserved(const kube::Key& parent, const std::string& child_uid) {
  base::MutexLock lock(mutex_);
  const auto it = open_.find(parent);
  if (it == open_.end()) return;
  it->second.deletions.erase(child_uid);
  if (it->second.creations == 0 && it->second.deletions.empty()) open_.erase(it);
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
  if (child.deleting()) {
    DeletionObserved(parent, child.uid());
  } else {
    CreationObserved(parent);
  }
}

void Expectations::ObserveUpdate(const kube::Key& parent, const kube::Object& child) {
  if (child.deleting()) DeletionObserved(parent, child.uid());
}

void Expectations::ObserveDelete(const kube::Key& parent, const kube::Object& child) {
  DeletionObserved(parent, child.uid());
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

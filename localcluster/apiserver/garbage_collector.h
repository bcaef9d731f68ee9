// Deletes dependents whose owners have been deleted (by UID) and the content of terminating namespaces, and completes
// the deletion of owners with Foreground or Orphan propagation.
//
// Level-triggered: each sweep looks at all objects at one moment. Thread-safe; Stop is idempotent.
#pragma once

#include <set>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "localcluster/apiserver/rest.h"

namespace medley::localcluster::apiserver {

class GarbageCollector {
 public:
  explicit GarbageCollector(Rest& rest) : rest_(rest) {}  // borrowed
  ~GarbageCollector() { Stop(); }
  void Start();
  void Stop();
  // Call it after each commit. Triggers a sweep if the change can matter. Never blocks.
  void Notice(const Change& change);

 private:
  struct View;
  void Run(std::stop_token stop);
  void Sweep();
  void SweepOwners(const View& view);
  void SweepNamespaces(const View& view);

  Rest& rest_;
  base::Mutex mutex_;
  base::CondVar wake_;
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace medley::localcluster::apiserver

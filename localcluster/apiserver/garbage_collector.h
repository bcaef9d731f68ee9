// Deletes what nobody owns any more: dependents of deleted owners (by UID), the content of terminating
// namespaces; lets go of owners deleted with Foreground or Orphan propagation.
//
// Level-triggered: each sweep looks at everything at one moment. Thread-safe; Stop is idempotent.
#pragma once

#include <set>
#include <string>
#include <thread>

#include "common/base/mutex.h"
#include "localcluster/apiserver/rest.h"

namespace medley::kube::apiserver {

class GarbageCollector {
 public:
  explicit GarbageCollector(Rest& rest) : rest_(rest) {}  // borrowed
  ~GarbageCollector() { Stop(); }
  void Start();
  void Stop();
  // A change has been committed: sweeps soon if it can matter. Never blocks.
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

}  // namespace medley::kube::apiserver

// Binds pending pods to nodes: the scheduler of the process node. Thread-safe.
//
// Places one pod at a time and counts the pods that it has placed but the cache does not show yet. A pod that fits no
// node gets the condition PodScheduled=False (Unschedulable, with the reason of each node). It is placed again when
// resources may have become free.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "kube/cache/store.h"
#include "kube/client.h"
#include "localcluster/node/process_node.h"

namespace medley::localcluster {

class Binder {
 public:
  // All arguments are borrowed.
  Binder(kube::Client& client, base::Clock& clock, const std::vector<VirtualNode>& nodes, const kube::Store& pods)
      : client_(client), clock_(clock), nodes_(nodes), pods_(pods) {}

  // `pod` has no node, is not terminating, and belongs to this scheduler (see IsOurs).
  // Errors: those of the API; the caller retries.
  absl::Status Place(const kube::ObjectPtr& pod);
  // Call it when the cache shows the pod on a node, or no longer shows it: forgets the assumed placement.
  void Forget(const kube::Key& pod);
  // Returns and clears the pods that fitted no node, to place them again when a pod has ended or been deleted.
  std::set<kube::Key> TakeUnschedulable();

  static bool IsOurs(const kube::Object& pod);

 private:
  std::vector<kube::ObjectPtr> PodsWithAssumed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Bind(const kube::Object& pod, const std::string& node);
  absl::Status Refuse(const kube::ObjectPtr& pod, const std::string& message);

  kube::Client& client_;
  base::Clock& clock_;
  const std::vector<VirtualNode>& nodes_;
  const kube::Store& pods_;
  base::Mutex mutex_;
  std::map<kube::Key, kube::ObjectPtr> assumed_ ABSL_GUARDED_BY(mutex_);  // with spec.nodeName set
  std::set<kube::Key> unschedulable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::localcluster

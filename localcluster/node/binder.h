// Gives pending pods a node: the Scheduler of the process node. Thread-safe.
//
// Places one pod at a time and counts what it placed before the cache shows it. Pods that fit nowhere get
// the condition PodScheduled=False (Unschedulable, with the reason of each node) and are tried again when
// room may have come.
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

namespace medley::kube {

class Binder {
 public:
  // All borrowed.
  Binder(Client& client, base::Clock& clock, const std::vector<VirtualNode>& nodes, const Store& pods)
      : client_(client), clock_(clock), nodes_(nodes), pods_(pods) {}

  // `pod` has no node, is not being deleted, and is this scheduler's (see IsOurs).
  // Errors: the API's; to be tried again.
  absl::Status Place(const ObjectPtr& pod);
  // The cache shows this pod on a node, or no more: what was assumed of it is forgotten.
  void Forget(const Key& pod);
  // Pods that fitted nowhere: to be placed again when a pod has ended or gone.
  std::set<Key> TakeUnschedulable();

  static bool IsOurs(const Object& pod);

 private:
  std::vector<ObjectPtr> PodsWithAssumed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Bind(const Object& pod, const std::string& node);
  absl::Status Refuse(const ObjectPtr& pod, const std::string& message);

  Client& client_;
  base::Clock& clock_;
  const std::vector<VirtualNode>& nodes_;
  const Store& pods_;
  base::Mutex mutex_;
  std::map<Key, ObjectPtr> assumed_ ABSL_GUARDED_BY(mutex_);  // with spec.nodeName set
  std::set<Key> unschedulable_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube

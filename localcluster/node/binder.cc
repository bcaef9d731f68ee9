#include "localcluster/node/binder.h"

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/json_access.h"
#include "kube/pod.h"
#include "localcluster/node/pod_status.h"
#include "localcluster/node/scheduler.h"

namespace medley::kube {

bool Binder::IsOurs(const Object& pod) {
  const std::string scheduler = pod.String("/spec/schedulerName");
  return (scheduler.empty() || scheduler == "default-scheduler") &&
         GetArray(pod.At("/spec"), "schedulingGates").empty() && !HasEnded(pod);
}

std::vector<ObjectPtr> Binder::PodsWithAssumed() const {
  std::vector<ObjectPtr> pods;
  for (const ObjectPtr& pod : pods_.List()) {
    const auto it = assumed_.find(pod->key());
    const bool assumed = it != assumed_.end() && it->second->uid() == pod->uid();
    pods.push_back(assumed && pod->String("/spec/nodeName").empty() ? it->second : pod);
  }
  return pods;
}

absl::Status Binder::Place(const ObjectPtr& pod) {
  Placement placement;
  {
    base::MutexLock lock(mutex_);
    if (const auto it = assumed_.find(pod->key()); it != assumed_.end() && it->second->uid() == pod->uid()) {
      return absl::OkStatus();  // already bound; the cache does not show it yet
    }
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<NodeRoom> rooms, RoomOf(nodes_, PodsWithAssumed()));
    placement = PlacePod(*pod, rooms);
    if (placement.node) {
      Object placed = *pod;
      placed.mutable_json()["spec"]["nodeName"] = *placement.node;
      assumed_[pod->key()] = std::make_shared<const Object>(std::move(placed));
      unschedulable_.erase(pod->key());
    } else {
      unschedulable_.insert(pod->key());
    }
  }
  if (!placement.node) return Refuse(pod, placement.message);
  const absl::Status bound = Bind(*pod, *placement.node);
  if (!bound.ok()) Forget(pod->key());
  // NotFound and Conflict: the pod was deleted or bound by another scheduler; the cache will show it.
  return IsNotFound(bound) || IsConflict(bound) ? absl::OkStatus() : bound;
}

absl::Status Binder::Bind(const Object& pod, const std::string& node) {
  const Key key = pod.key();
  const Resource binding{"", "v1", "pods/" + key.name + "/binding", "Binding", true};
  Object object(binding, key);
  object.mutable_json()["metadata"]["uid"] = pod.uid();
  object.mutable_json()["target"] = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}};
  return client_.Create(binding, object).status();
}

absl::Status Binder::Refuse(const ObjectPtr& pod, const std::string& message) {
  const Json* current = nullptr;
  for (const Json& condition : GetArray(pod->At("/status"), "conditions")) {
    if (GetString(condition, "type") == "PodScheduled") current = &condition;
  }
  if (current != nullptr && GetString(*current, "message") == message && GetString(*current, "status") == "False") {
    return absl::OkStatus();
  }
  log::Info("no node fits a pod", {{"pod", pod->key().ToString()}, {"why", message}});
  Object changed = *pod;
  Json& status = changed.mutable_json()["status"];
  if (!status.is_object()) status = Json::object();
  if (GetString(status, "phase").empty()) status["phase"] = "Pending";
  SetCondition(status["conditions"], "PodScheduled", false, "Unschedulable", message, clock_.Now());
  const absl::Status written = client_.Update(resources::Pods(), changed, "status").status();
  // A newer version of the pod will arrive and be placed.
  return IsNotFound(written) || IsConflict(written) ? absl::OkStatus() : written;
}

void Binder::Forget(const Key& pod) {
  base::MutexLock lock(mutex_);
  assumed_.erase(pod);
}

std::set<Key> Binder::TakeUnschedulable() {
  base::MutexLock lock(mutex_);
  return std::exchange(unschedulable_, {});
}

}  // namespace medley::kube

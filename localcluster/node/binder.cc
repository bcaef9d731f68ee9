#include "localcluster/node/binder.h"

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "kube/json_access.h"
#include "kube/pod.h"
#include "localcluster/node/pod_status.h"
#include "localcluster/node/scheduler.h"

namespace medley::localcluster {

bool Binder::IsOurs(const kube::Object& pod) {
  const std::string scheduler = pod.String("/spec/schedulerName");
  return (scheduler.empty() || scheduler == "default-scheduler") &&
         kube::GetArray(pod.At("/spec"), "schedulingGates").empty() && !kube::HasEnded(pod);
}

std::vector<kube::ObjectPtr> Binder::PodsWithAssumed() const {
  std::vector<kube::ObjectPtr> pods;
  for (const kube::ObjectPtr& pod : pods_.List()) {
    const auto it = assumed_.find(pod->key());
    const bool assumed = it != assumed_.end() && it->second->uid() == pod->uid();
    pods.push_back(assumed && pod->String("/spec/nodeName").empty() ? it->second : pod);
  }
  return pods;
}

absl::Status Binder::Place(const kube::ObjectPtr& pod) {
  Placement placement;
  {
    base::MutexLock lock(mutex_);
    if (const auto it = assumed_.find(pod->key()); it != assumed_.end() && it->second->uid() == pod->uid()) {
      return absl::OkStatus();  // already bound; the cache does not show it yet
    }
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<NodeRoom> rooms, RoomOf(nodes_, PodsWithAssumed()));
    placement = PlacePod(*pod, rooms);
    if (placement.node) {
      kube::Object placed = *pod;
      placed.mutable_json()["spec"]["nodeName"] = *placement.node;
      assumed_[pod->key()] = std::make_shared<const kube::Object>(std::move(placed));
      unschedulable_.erase(pod->key());
    } else {
      unschedulable_.insert(pod->key());
    }
  }
  if (!placement.node) return Refuse(pod, placement.message);
  const absl::Status bound = Bind(*pod, *placement.node);
  if (!bound.ok()) Forget(pod->key());
  // NotFound and Conflict: the pod was deleted or bound by another scheduler; the cache will show it.
  return kube::IsNotFound(bound) || kube::IsConflict(bound) ? absl::OkStatus() : bound;
}

absl::Status Binder::Bind(const kube::Object& pod, const std::string& node) {
  const kube::Key key = pod.key();
  const kube::Resource binding{"", "v1", "pods/" + key.name + "/binding", "Binding", true};
  kube::Object object(binding, key);
  object.mutable_json()["metadata"]["uid"] = pod.uid();
  object.mutable_json()["target"] = {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}};
  return client_.Create(binding, object).status();
}

absl::Status Binder::Refuse(const kube::ObjectPtr& pod, const std::string& message) {
  const kube::Json* current = nullptr;
  for (const kube::Json& condition : kube::GetArray(pod->At("/status"), "conditions")) {
    if (kube::GetString(condition, "type") == "PodScheduled") current = &condition;
  }
  if (current != nullptr && kube::GetString(*current, "message") == message &&
      kube::GetString(*current, "status") == "False") {
    return absl::OkStatus();
  }
  base::log::Info("no node fits a pod", {{"pod", pod->key().ToString()}, {"why", message}});
  kube::Object changed = *pod;
  kube::Json& status = changed.mutable_json()["status"];
  if (!status.is_object()) status = kube::Json::object();
  if (kube::GetString(status, "phase").empty()) status["phase"] = "Pending";
  SetCondition(status["conditions"], "PodScheduled", false, "Unschedulable", message, clock_.Now());
  const absl::Status written = client_.Update(kube::resources::Pods(), changed, "status").status();
  // A newer version of the pod will arrive and be placed.
  return kube::IsNotFound(written) || kube::IsConflict(written) ? absl::OkStatus() : written;
}

void Binder::Forget(const kube::Key& pod) {
  base::MutexLock lock(mutex_);
  assumed_.erase(pod);
}

std::set<kube::Key> Binder::TakeUnschedulable() {
  base::MutexLock lock(mutex_);
  return std::exchange(unschedulable_, {});
}

}  // namespace medley::localcluster

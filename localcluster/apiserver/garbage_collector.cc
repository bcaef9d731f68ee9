#include "localcluster/apiserver/garbage_collector.h"

#include <map>
#include <utility>

namespace medley::localcluster::apiserver {
namespace {

bool HasFinalizer(const kube::Object& object, const char* name) {
  for (const kube::Json& one : object.At("/metadata/finalizers")) {
    if (one == name) return true;
  }
  return false;
}

}  // namespace

// All objects at one moment.
struct GarbageCollector::View {
  std::map<std::string, std::vector<kube::ObjectPtr>> all;
  std::set<std::string> uids;
  std::map<std::string, std::vector<std::pair<InfoPtr, kube::ObjectPtr>>> dependents;  // by owner's uid
};

void GarbageCollector::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void GarbageCollector::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void GarbageCollector::Notice(const Change& change) {
  const kube::Json& metadata = change.object->At("/metadata");
  const bool matters = change.type == Change::Type::kDeleted || metadata.contains("deletionTimestamp") ||
                       (change.type == Change::Type::kAdded && metadata.contains("ownerReferences"));
  if (!matters) return;
  base::MutexLock lock(mutex_);
  dirty_ = true;
  wake_.NotifyAll();
}

void GarbageCollector::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    {
      base::MutexLock lock(mutex_);
      if (!wake_.Wait(mutex_, stop, [&] { return dirty_; })) return;
      dirty_ = false;
    }
    Sweep();
  }
}

void GarbageCollector::Sweep() {
  View view;
  view.all = rest_.store().All();
  for (const auto& [bucket, objects] : view.all) {
    const InfoPtr info = rest_.registry().FindBucket(bucket);
    for (const kube::ObjectPtr& object : objects) {
      view.uids.insert(object->uid());
      if (info == nullptr) continue;
      for (const kube::OwnerReference& owner : object->owners()) {
        view.dependents[owner.uid].emplace_back(info, object);
      }
    }
  }
  SweepOwners(view);
  SweepNamespaces(view);
}

void GarbageCollector::SweepOwners(const View& view) {
  // Delete dependents whose owners have all been deleted.
  for (const auto& [uid, dependents] : view.dependents) {
    if (view.uids.contains(uid)) continue;
    for (const auto& [info, object] : dependents) {
      bool owned = false;
      for (const kube::OwnerReference& owner : object->owners()) {
        owned = owned || view.uids.contains(owner.uid);
      }
      if (owned || object->deleting()) continue;
      // If the object was deleted or replaced meanwhile, there is nothing to do.
      (void)rest_.Delete(*info, object->key(), {.uid = object->uid(), .propagation = "Background"});
    }
  }
  for (const auto& [bucket, objects] : view.all) {
    const InfoPtr info = rest_.registry().FindBucket(bucket);
    if (info == nullptr) continue;
    for (const kube::ObjectPtr& object : objects) {
      if (!object->deleting()) continue;
      const auto it = view.dependents.find(object->uid());
      if (HasFinalizer(*object, "foregroundDeletion")) {
        if (it == view.dependents.end()) {
          (void)rest_.RemoveFinalizer(*info, object->key(), "foregroundDeletion");
          continue;
        }
        for (const auto& [kind, child] : it->second) {
          if (child->deleting()) continue;
          (void)rest_.Delete(*kind, child->key(), {.uid = child->uid(), .propagation = "Foreground"});
        }
      } else if (HasFinalizer(*object, "orphan")) {
        if (it != view.dependents.end()) {
          for (const auto& [kind, child] : it->second) {
            const auto disown = [&](const kube::Json& current) -> absl::StatusOr<kube::Json> {
              kube::Json next = current;
              kube::Json kept = kube::Json::array();
              for (const kube::Json& one : next["metadata"]["ownerReferences"]) {
                if (one.value("uid", "") != object->uid()) kept.push_back(one);
              }
              next["metadata"]["ownerReferences"] = std::move(kept);
              return next;
            };
            WriteOptions options;
            options.manager = "garbage-collector";
            (void)rest_.Modify(*kind, child->key(), disown, options);
          }
        }
        (void)rest_.RemoveFinalizer(*info, object->key(), "orphan");
      }
    }
  }
}

void GarbageCollector::SweepNamespaces(const View& view) {
  const auto namespaces = view.all.find("/namespaces");
  if (namespaces == view.all.end()) return;
  for (const kube::ObjectPtr& ns : namespaces->second) {
    if (!ns->deleting()) continue;
    const std::string name = ns->key().name;
    bool empty = true;
    for (const auto& [bucket, objects] : view.all) {
      const InfoPtr info = rest_.registry().FindBucket(bucket);
      for (const kube::ObjectPtr& object : objects) {
        if (info == nullptr || object->key().ns != name) continue;
        empty = false;
        if (!object->deleting()) (void)rest_.Delete(*info, object->key(), {.uid = object->uid()});
      }
    }
    if (empty) rest_.FinishNamespace(name);
  }
}

}  // namespace medley::localcluster::apiserver

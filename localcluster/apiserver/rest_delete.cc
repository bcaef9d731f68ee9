// Deletion: preconditions, finalizers, graceful pods, namespaces, CRDs.
#include <fmt/format.h>

#include "common/base/status.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/rest.h"

namespace medley::localcluster::apiserver {
namespace {

void AddFinalizer(kube::Json* metadata, const std::string& name) {
  kube::Json& list = (*metadata)["finalizers"];
  if (!list.is_array()) list = kube::Json::array();
  for (const kube::Json& one : list) {
    if (one == name) return;
  }
  list.push_back(name);
}

// How many seconds the node gets to end the object: 0 unless it is a pod that runs on a node.
int64_t Grace(const ResourceInfo& info, const kube::Json& object, const DeleteSpec& spec) {
  if (info.resource.kind != "Pod" || !info.resource.group.empty()) return 0;
  const kube::Json pod = object.value("spec", kube::Json::object());
  if (pod.value("nodeName", "").empty()) return 0;
  const std::string phase = object.value("status", kube::Json::object()).value("phase", "");
  if (phase == "Succeeded" || phase == "Failed") return 0;
  return spec.grace_seconds.value_or(pod.value("terminationGracePeriodSeconds", int64_t{30}));
}

absl::Status Preconditions(const ResourceInfo& info, const kube::Object& object, const DeleteSpec& spec) {
  if (spec.uid.has_value() && *spec.uid != object.uid()) {
    return ConflictError(info.resource, object.key().name,
                         fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                     "meta: {}",
                                     *spec.uid, object.uid()));
  }
  if (spec.resource_version.has_value() && *spec.resource_version != object.resource_version()) {
    return ConflictError(info.resource, object.key().name,
                         fmt::format("Precondition failed: ResourceVersion in precondition: {}, "
                                     "ResourceVersion in object meta: {}",
                                     *spec.resource_version, object.resource_version()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<Deleted>> Rest::TryDelete(const ResourceInfo& info, const kube::Key& key,
                                                       const DeleteSpec& spec) {
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr current, Get(info, key));
  MEDLEY_RETURN_IF_ERROR(Preconditions(info, *current, spec));
  kube::Json next = current->json();
  kube::Json& metadata = next["metadata"];
  if (spec.propagation == "Foreground") AddFinalizer(&metadata, "foregroundDeletion");
  if (spec.propagation == "Orphan") AddFinalizer(&metadata, "orphan");
  int64_t grace = Grace(info, next, spec);
  const bool namespaces = info.bucket() == "/namespaces";
  const bool waits = grace > 0 || namespaces || (metadata.contains("finalizers") && !metadata["finalizers"].empty());
  if (!waits) {
    if (spec.dry_run) return Deleted{current, true};
    kube::ObjectPtr last = store_.Commit(info.bucket(), key, current, std::nullopt);
    if (last == nullptr) return std::optional<Deleted>();
    AfterCommit(info, last, true);
    return Deleted{std::move(last), true};
  }
  if (current->deleting()) {  // the deadline can only move forward
    grace = std::min(grace, metadata.value("deletionGracePeriodSeconds", int64_t{0}));
  }
  const bool sooner = !current->deleting() || grace < metadata.value("deletionGracePeriodSeconds", int64_t{0});
  if (sooner) {
    metadata["deletionTimestamp"] = base::FormatTime(clock_.Now() + base::seconds(grace));
    metadata["deletionGracePeriodSeconds"] = grace;
  }
  if (namespaces) next["status"]["phase"] = "Terminating";
  if (next == current->json() || spec.dry_run) return Deleted{current, false};
  if (info.has_generation && !current->deleting()) {
    metadata["generation"] = metadata.value("generation", int64_t{1}) + 1;
  }
  kube::ObjectPtr stored = store_.Commit(info.bucket(), key, current, std::move(next));
  if (stored == nullptr) return std::optional<Deleted>();
  return Deleted{std::move(stored), false};
}

absl::StatusOr<Deleted> Rest::Delete(const ResourceInfo& info, const kube::Key& key, const DeleteSpec& spec) {
  if (info.bucket() == "/namespaces" && (key.name == "default" || key.name == "kube-system")) {
    return ForbiddenError(info.resource, key.name, "this namespace may not be deleted");
  }
  for (int i = 0; i < 100; ++i) {
    MEDLEY_ASSIGN_OR_RETURN(const std::optional<Deleted> done, TryDelete(info, key, spec));
    if (done.has_value()) return *done;
  }
  return ConflictError(info.resource, key.name, "too many concurrent changes; try again");
}

absl::Status Rest::RemoveFinalizer(const ResourceInfo& info, const kube::Key& key, const std::string& name) {
  for (int i = 0; i < 100; ++i) {
    const kube::ObjectPtr current = store_.Get(info.bucket(), key);
    if (current == nullptr) return absl::OkStatus();
    kube::Json next = current->json();
    kube::Json& metadata = next["metadata"];
    if (!metadata.contains("finalizers")) return absl::OkStatus();
    kube::Json kept = kube::Json::array();
    for (const kube::Json& one : metadata["finalizers"]) {
      if (one != name) kept.push_back(one);
    }
    if (kept.empty()) {
      metadata.erase("finalizers");
    } else {
      metadata["finalizers"] = std::move(kept);
    }
    if (Commit(info, key, current, std::move(next)) != nullptr) return absl::OkStatus();
  }
  return ConflictError(info.resource, key.name, "too many concurrent changes; try again");
}

void Rest::FinishNamespace(const std::string& name) {
  const kube::Key key{"", name};
  const kube::ObjectPtr current = store_.Get("/namespaces", key);
  if (current == nullptr || !current->deleting()) return;
  if (!current->At("/metadata/finalizers").empty()) return;
  store_.Commit("/namespaces", key, current, std::nullopt);
}

void Rest::AfterCommit(const ResourceInfo& info, const kube::ObjectPtr& object, bool deleted) {
  if (info.bucket() != "apiextensions.k8s.io/customresourcedefinitions") return;
  if (!deleted) {
    registry_.SetCrd(object->json());
    return;
  }
  const std::string bucket = object->String("/spec/group") + "/" + object->String("/spec/names/plural");
  registry_.RemoveCrd(object->key().name);
  for (const kube::ObjectPtr& one : store_.List(bucket).objects) {
    store_.Commit(bucket, one->key(), one, std::nullopt);
  }
  store_.CutWatchers(bucket);
}

}  // namespace medley::localcluster::apiserver

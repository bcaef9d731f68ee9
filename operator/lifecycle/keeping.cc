#include "operator/lifecycle/keeping.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/taken_names.h"

namespace medley::ops::lifecycle {
namespace {

using kube::Json;

constexpr base::nanoseconds kFirstPause = base::seconds(1);  // doubles with each restore
constexpr base::nanoseconds kLongestPause = base::seconds(60);
constexpr base::nanoseconds kQuiet = std::chrono::minutes(10);  // after which the pauses begin again with the first
constexpr base::nanoseconds kCachePatience = base::seconds(5);
constexpr base::nanoseconds kLookAgain = base::seconds(60);

constexpr const char* kOwnLabels[] = {kJobNameLabel, "app.kubernetes.io/managed-by"};

// For the fields that others must not change. Status, annotations and labels of others do not count.
uint64_t DigestOf(const kube::Object& object, const std::string& owner_uid) {
  Json labels = Json::object();
  for (const char* name : kOwnLabels) labels[name] = object.label(name);
  const auto owner = object.controller();
  const bool owned = owner && owner->uid == owner_uid;
  return std::hash<std::string>()(kube::Dump(Json::array({object.At("/spec"), std::move(labels), owned})));
}

// OK: the object is this job's. Otherwise it belongs to an earlier job of the same name, which is being deleted, or to
// another user, who must be notified. An object whose owner another client has removed is nobody's: to give it an owner
// again, some API servers require the right to delete it (admission plugin OwnerReferencesPermissionEnforcement).
absl::Status CheckOwned(Pass& pass, const kube::Object& existing) {
  const auto owner = existing.controller();
  if (owner && owner->uid == pass.object.uid()) {
    ReportFreeName(pass, existing.kind(), existing.key());
    return absl::OkStatus();
  }
  const std::string what = existing.kind() + " " + existing.key().ToString();
  if (owner && owner->kind == TrainingJobs().kind && owner->name == pass.object.key().name) {
    return base::Unavailable("{} still belongs to an earlier job of this name; waiting until it is deleted", what);
  }
  ReportTakenName(pass, existing);
  return base::FailedPrecondition("{} does not belong to this job, which needs an object of this name", what);
}

void Remember(Pass& pass, KeptObject& kept, const kube::Object& result) {
  ReportFreeName(pass, result.kind(), result.key());
  kept.uid = result.uid();
  kept.digest = DigestOf(result, pass.object.uid());
  kept.version.clear();
  kept.next = std::max(kept.next, pass.world.steady + kFirstPause);  // until the cache shows it
}

// One try; what exists is applied over, what does not is created.
absl::Status Write(Pass& pass, const kube::Resource& resource, const kube::Object& object, bool exists,
                   KeptObject& kept) {
  const std::string what = resource.kind + " " + object.key().ToString();
  if (!exists) {
    MEDLEY_ASSIGN_OR_RETURN(const EnsureObject::Outcome outcome, pass.Ask(EnsureObject{resource, object, false}));
    if (!outcome.object.ok()) return base::Annotate(outcome.object.status(), "create " + what);
    if (outcome.created) {
      Remember(pass, kept, *outcome.object);
      return absl::OkStatus();
    }
    MEDLEY_RETURN_IF_ERROR(CheckOwned(pass, *outcome.object));
  }
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> applied, pass.Ask(ApplyObject{resource, object}));
  if (!applied.ok()) return base::Annotate(applied.status(), "apply " + what);
  Remember(pass, kept, *applied);
  return absl::OkStatus();
}

// Reads the object from the API server, and writes it if it is not as it should be.
absl::Status Restore(Pass& pass, const kube::Resource& resource, const kube::Key& key,
                     const std::function<kube::Object()>& object, KeptObject& kept) {
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> live, pass.Ask(GetObject{resource, key}));
  const bool absent = kube::IsNotFound(live.status());
  if (!live.ok() && !absent) return base::Annotate(live.status(), "read " + resource.kind + " " + key.ToString());
  if (!absent) {
    if (live->deleting()) return absl::OkStatus();  // it is created again when it does not exist any more
    MEDLEY_RETURN_IF_ERROR(CheckOwned(pass, *live));
    if (DigestOf(*live, pass.object.uid()) == kept.digest) return absl::OkStatus();  // the cache is behind, or none
  }
  MEDLEY_RETURN_IF_ERROR(Write(pass, resource, object(), !absent, kept));
  CountRestore(pass, kept, resource, key.name, absent ? "deleted" : "changed");
  return absl::OkStatus();
}

}  // namespace

bool IsDue(Pass& pass, const KeptObject& kept) {
  if (pass.world.steady >= kept.next) return true;
  pass.RequeueAfter(kept.next - pass.world.steady);
  return false;
}

void ForgetKept(Pass& pass, const kube::Resource& resource) { pass.Own(&Memory::keeping).kept.erase(resource.kind); }

void LookLater(Pass& pass, KeptObject& kept) { kept.next = std::max(kept.next, pass.world.steady + kLookAgain); }

void CountRestore(Pass& pass, KeptObject& kept, const kube::Resource& resource, const std::string& name,
                  const char* how) {
  if (pass.world.steady - kept.restored > kQuiet) kept.restores = 0;
  kept.restored = pass.world.steady;
  kept.next = pass.world.steady + std::min(kFirstPause * (int64_t{1} << std::min(kept.restores, 10)), kLongestPause);
  ++kept.restores;
  pass.Warning("ObjectRestored",
               fmt::format("{} {} was {} by another client; the operator has restored it.", resource.kind, name, how));
}

absl::StatusOr<kube::Object> EnsureOwned(Pass& pass, const kube::Resource& resource, const kube::Object& object,
                                         bool probably_exists) {
  MEDLEY_ASSIGN_OR_RETURN(EnsureObject::Outcome existing, pass.Ask(EnsureObject{resource, object, probably_exists}));
  if (!existing.object.ok()) {
    return base::Annotate(existing.object.status(), "create " + resource.kind + " " + object.key().ToString());
  }
  MEDLEY_RETURN_IF_ERROR(CheckOwned(pass, *existing.object));
  return std::move(existing.object);
}

absl::Status KeepObject(Pass& pass, const kube::Resource& resource, const std::string& name, bool changed,
                        const std::function<kube::Object()>& object, Seen seen) {
  KeptObject& kept = pass.Own(&Memory::keeping).kept[resource.kind];
  const kube::ObjectPtr cached = pass.Cached(resource);
  if (kept.uid.empty() || changed) {
    // A job that runs does without the object; one that has no plan yet is tried again by the work queue.
    const bool runs = pass.memory.stored_plan.record.has_value();
    if (kept.uid.empty() && runs && pass.world.steady < kept.next) return absl::OkStatus();
    const auto owner = cached == nullptr ? std::nullopt : cached->controller();
    const bool exists = seen == Seen::kInCache ? owner && owner->uid == pass.object.uid() : !kept.uid.empty();
    const absl::Status written = Write(pass, resource, object(), exists, kept);
    if (seen == Seen::kOnlyOnServer || (!written.ok() && runs)) LookLater(pass, kept);
    return written;
  }
  if (cached != nullptr) {
    if (!kept.version.empty() && cached->resource_version() == kept.version) return absl::OkStatus();
    if (cached->uid() == kept.uid && DigestOf(*cached, pass.object.uid()) == kept.digest) {
      kept.version = cached->resource_version();
      return absl::OkStatus();
    }
  }
  if (seen == Seen::kOnlyOnServer ? pass.world.steady < kept.next : !IsDue(pass, kept)) return absl::OkStatus();
  const absl::Status done = Restore(pass, resource, {pass.object.key().ns, name}, object, kept);
  if (seen == Seen::kOnlyOnServer || !done.ok()) LookLater(pass, kept);
  // The cache may be behind, or the object terminating.
  if (kept.next <= pass.world.steady) kept.next = pass.world.steady + kCachePatience;
  if (pass.world.steady < kept.next && seen == Seen::kInCache) pass.RequeueAfter(kept.next - pass.world.steady);
  return done;
}

}  // namespace medley::ops::lifecycle

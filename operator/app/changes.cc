#include "operator/app/changes.h"

#include "operator/api/conditions.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"
#include "operator/controllers/profile_reconciler.h"
#include "operator/runtime/source.h"

namespace medley::ops {

std::vector<std::string> OwnerUid(const kube::Object& object) {
  const auto owner = object.controller();
  return owner ? std::vector<std::string>{owner->uid} : std::vector<std::string>();
}

bool JobChanged(const kube::Object& before, const kube::Object& now) {
  return GenerationChanged()(before, now) || before.At("/metadata/finalizers") != now.At("/metadata/finalizers");
}

bool PoolChanged(const kube::Object& before, const kube::Object& now) {
  const auto available = [](const kube::Object& pool) {
    return Conditions::FromJson(pool.At("/status/conditions")).IsTrue(kAvailableCondition);
  };
  return GenerationChanged()(before, now) || before.At("/status/outages") != now.At("/status/outages") ||
         available(before) != available(now);
}

bool ProfilesChanged(const kube::Object& before, const kube::Object& now) {
  return JobChanged(before, now) || MayWantProfiles(before) != MayWantProfiles(now);
}

bool OwnObjectChanged(const kube::Object& before, const kube::Object& now) {
  return before.At("/spec") != now.At("/spec") || before.At("/metadata/labels") != now.At("/metadata/labels") ||
         before.At("/metadata/ownerReferences") != now.At("/metadata/ownerReferences");
}

bool ReplansOnPriceChange(const kube::Object& job) {
  return job.At("/spec/elasticity/replan/onPriceChange") != kube::Json(false);
}

}  // namespace medley::ops

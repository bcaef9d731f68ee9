// Profiling: what each layer costs on each pool, measured once and kept for later jobs.
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_pass.h"
#include "operator/records/profile_store.h"

namespace medley::ops {
namespace {

constexpr int kPermanent = 2;  // exit code of a worker that a retry will not help

std::string Bounds(const std::vector<PoolOffer>& offers) {
  std::string bounds;
  for (const PoolOffer& offer : offers) bounds += (bounds.empty() ? "" : "; ") + offer.bound;
  return bounds;
}

}  // namespace

absl::StatusOr<std::optional<model::Profile>> JobPass::StoredProfile(const std::string& hash, const std::string& pool) {
  const kube::Key key{job_->key().ns, ProfileConfigMapName(hash, pool)};
  const kube::ObjectPtr map = deps_.stores.config_maps.Get(key);
  if (map == nullptr) return std::optional<model::Profile>();
  auto profile = ParseProfile(map->String("/data/profile.json"), pool);
  if (profile.ok()) return std::optional<model::Profile>(*std::move(profile));
  log::Warn("a stored profile is unreadable and is measured again",
            {{"configmap", key.ToString()}, {"error", base::ToString(profile.status())}});
  const absl::Status gone = deps_.client.Delete(kube::resources::ConfigMaps(), key, {.uid = map->uid()});
  if (!gone.ok() && !kube::IsNotFound(gone)) return gone;
  return std::optional<model::Profile>();
}

absl::StatusOr<std::optional<model::Profile>> JobPass::Profiles(const Pools& pools) {
  MEDLEY_ASSIGN_OR_RETURN(const model::JobSpec spec, model::ParseJobSpec(job_->spec.dump()));
  const std::string hash = model::ProfileHash(spec);
  std::vector<model::Profile> found;
  std::string waiting;
  int missing = 0;
  memory_.profilers.clear();
  for (const PoolOffer& offer : pools.offers) {
    MEDLEY_ASSIGN_OR_RETURN(std::optional<model::Profile> profile, StoredProfile(hash, offer.pool->name));
    if (profile) {
      found.push_back(*std::move(profile));
      // Another job's profiler may have been faster than this job's.
      const kube::ObjectPtr needless = Pod(ProfilerName(job_->name(), offer.pool->name));
      if (needless != nullptr && !Going(*needless)) MEDLEY_RETURN_IF_ERROR(DeletePod(*needless));
      continue;
    }
    // Nothing to measure on: the pool is left out until it has a unit.
    if (offer.units <= 0 && Pod(ProfilerName(job_->name(), offer.pool->name)) == nullptr) continue;
    waiting += (waiting.empty() ? "" : ", ") + offer.pool->name;
    memory_.profilers.insert(ProfilerName(job_->name(), offer.pool->name));
    if (missing++ < deps_.options.parallel_profilers) MEDLEY_RETURN_IF_ERROR(RunProfiler(hash, *offer.pool));
    if (status_.finished()) return std::optional<model::Profile>();
  }
  if (missing > 0) {
    SetCondition(kPlannedCondition, ConditionStatus::kUnknown, "Profiling",
                 "the layers are being measured on: " + waiting);
    return std::optional<model::Profile>();
  }
  if (found.empty()) {
    SetCondition(kPlannedCondition, ConditionStatus::kFalse, "Infeasible",
                 "no pool has a free unit to measure the layers on: needed 1, free 0; add nodes, "
                 "raise a pool's spec.limit or the namespace's ResourceQuota; bounded by: " +
                     Bounds(pools.offers));
    return std::optional<model::Profile>();
  }
  MEDLEY_ASSIGN_OR_RETURN(model::Profile merged, MergeProfiles(found));
  return std::optional<model::Profile>(std::move(merged));
}

absl::Status JobPass::RunProfiler(const std::string& hash, const ResourcePool& pool) {
  const kube::ObjectPtr pod = Pod(ProfilerName(job_->name(), pool.name));
  if (pod == nullptr) {
    const auto failed = memory_.failures.find(ProfilerName(job_->name(), pool.name));
    if (failed != memory_.failures.end() && failed->second.retry_at > steady_) {
      Again(failed->second.retry_at - steady_);
      return absl::OkStatus();
    }
    // The cache may lag behind the ConfigMap that this operator has just written: ask the API server itself before a
    // pool is measured (for seconds, at somebody's cost) again.
    const auto stored =
        deps_.client.Get(kube::resources::ConfigMaps(), {job_->key().ns, ProfileConfigMapName(hash, pool.name)});
    if (stored.ok()) {
      Again(base::milliseconds(50));
      return absl::OkStatus();
    }
    if (!kube::IsNotFound(stored.status())) return stored.status();
    return CreatePod(ProfilerPod(*job_, pool, deps_.options.worker));
  }
  if (Going(*pod)) return absl::OkStatus();
  const std::string phase = pod->String("/status/phase");
  if (phase == "Succeeded") return CollectProfile(hash, pool, *pod);
  if (phase == "Failed") return ProfilerFailed(*pod);
  return absl::OkStatus();
}

absl::Status JobPass::CollectProfile(const std::string& hash, const ResourcePool& pool, const kube::Object& pod) {
  const auto log = deps_.client.GetRaw(kube::resources::Pods().Path(pod.key().ns, pod.key().name, "log"));
  if (!log.ok() && !kube::IsNotFound(log.status()))
    return base::Annotate(log.status(), "log of " + pod.key().ToString());
  const auto json = ProfileJsonInLog(log.ok() ? *log : "");
  const absl::Status good = json.ok() ? ParseProfile(*json, pool.name).status() : json.status();
  if (!good.ok()) {
    Event(EventRecorder::Type::kWarning, "ProfileUnreadable",
          "profiler pod " + pod.key().name + ": " + base::Message(good));
    return ProfilerFailed(pod);
  }
  const auto made =
      deps_.client.Create(kube::resources::ConfigMaps(), ProfileConfigMap(job_->key().ns, hash, pool.name, *json));
  if (!made.ok() && !kube::IsAlreadyExists(made.status())) return made.status();
  Event(EventRecorder::Type::kNormal, "Profiled", "the layers were measured on pool " + pool.name);
  return DeletePod(pod);  // the ConfigMap's arrival brings the next pass
}

absl::Status JobPass::ProfilerFailed(const kube::Object& pod) {
  const std::string why = LastLine(LogOf(pod));
  const kube::Json& code = pod.At("/status/containerStatuses/0/state/terminated/exitCode");
  if (code.is_number_integer() && code.get<int>() == kPermanent) {
    return Finish(false, "ProfileFailed", "measuring the layers failed for good: " + why);
  }
  JobMemory::Failures& failures = memory_.failures[pod.key().name];
  if (failures.last_uid != pod.uid()) {
    failures.last_uid = pod.uid();
    ++failures.count;
    failures.retry_at = steady_ + base::seconds(std::min(60, 1 << std::min(6, failures.count)));
    ++status_.restarts;
    deps_.metrics.CountRestart();
    Event(EventRecorder::Type::kWarning, "ProfilerFailed", "profiler pod " + pod.key().name + " " + HowItEnded(pod));
  }
  if (status_.restarts > job_->run_policy.backoff_limit) {
    return Finish(false, "BackoffLimitExceeded",
                  fmt::format("{} restarts, spec.runPolicy.backoffLimit allows {}; last: profiler pod {} {}",
                              status_.restarts, job_->run_policy.backoff_limit, pod.key().name, HowItEnded(pod)));
  }
  Again(failures.retry_at - steady_);
  return DeletePod(pod);
}

}  // namespace medley::ops

#include "operator/lifecycle/profiling.h"

#include <algorithm>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/finishing.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/pods.h"
#include "operator/records/plan_request.h"
#include "operator/records/profile_store.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kProfileCacheRetry = base::milliseconds(50);

std::string Bounds(const UsablePools& pools) {
  std::string bounds;
  for (const PoolView& view : pools.pools) bounds += (bounds.empty() ? "" : "; ") + view.bound;
  return bounds;
}

absl::Status HandleFailedProfiler(Pass& pass, const TrainingJob& job, const kube::Object& pod) {
  JobStatus& status = pass.memory.status.current;
  if (ExitCode(pod) == kPermanentFailure) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string log, LogOf(pass, pod));
    return Finish(pass, job, false, "ProfileFailed",
                  fmt::format("Profiler pod {} failed, and a retry will not help: {}", pod.key().name, LastLine(log)));
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::string how, HowItEnded(pass, pod));
  PodFailures& failures = pass.memory.profiling.failures[pod.key().name];
  if (failures.last_uid != pod.uid()) {
    failures.last_uid = pod.uid();
    ++failures.count;
    failures.retry_at = pass.world.steady + base::seconds(BackoffSeconds(failures.count));
    ++status.restarts;
    pass.Publish(CountRestarts{1});
    pass.Warning("ProfilerFailed", "profiler pod " + pod.key().name + " " + how);
  }
  const int limit = job.run_policy.backoff_limit;
  if (status.restarts > limit) {
    return Finish(pass, job, false, "BackoffLimitExceeded",
                  fmt::format("{} restarts, spec.runPolicy.backoffLimit allows {}; last: profiler pod {} {}",
                              status.restarts, limit, pod.key().name, how));
  }
  pass.RequeueAfter(failures.retry_at - pass.world.steady);
  return DeletePod(pass, pod);
}

absl::Status StoreProfile(Pass& pass, const TrainingJob& job, const ResourcePool& pool, const kube::Object& pod) {
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<std::string> log, pass.Ask(ReadLog{pod.key(), 0}));
  if (!log.ok() && !kube::IsNotFound(log.status())) {
    return base::Annotate(log.status(), "read the log of pod " + pod.key().ToString());
  }
  const auto json = ProfileJsonInLog(log.ok() ? *log : "");
  const absl::Status valid = json.ok() ? ParseProfile(*json, pool.name).status() : json.status();
  if (!valid.ok()) {
    pass.Warning("ProfileUnreadable", "profiler pod " + pod.key().name + ": " + base::Message(valid));
    return HandleFailedProfiler(pass, job, pod);
  }
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> stored,
                          pass.Ask(EnsureObject{kube::resources::ConfigMaps(),
                                                ProfileConfigMap(job.key().ns, pass.profile_hash, pool.name, *json)}));
  if (!stored.ok()) return stored.status();
  pass.Event("Profiled", "the layers were measured on pool " + pool.name);
  return DeletePod(pass, pod);  // the new ConfigMap brings the next pass
}

absl::Status CreateProfiler(Pass& pass, const TrainingJob& job, const ResourcePool& pool) {
  const auto failed = pass.memory.profiling.failures.find(ProfilerName(job.name(), pool.name));
  if (failed != pass.memory.profiling.failures.end() && failed->second.retry_at > pass.world.steady) {
    pass.RequeueAfter(failed->second.retry_at - pass.world.steady);
    return absl::OkStatus();
  }
  // The cache may not show a ConfigMap yet that this operator has just written. Measuring takes seconds and costs
  // money, so the API server itself is asked first.
  const kube::Key key{job.key().ns, ProfileConfigMapName(pass.profile_hash, pool.name)};
  MEDLEY_ASSIGN_OR_RETURN(const absl::StatusOr<kube::Object> stored,
                          pass.Ask(GetObject{kube::resources::ConfigMaps(), key}));
  if (stored.ok()) {
    pass.RequeueAfter(kProfileCacheRetry);
    return absl::OkStatus();
  }
  if (!kube::IsNotFound(stored.status())) return stored.status();
  return CreatePodsOf(pass, {ProfilerPod(job, pool, pass.options.worker)});
}

absl::Status RunProfiler(Pass& pass, const TrainingJob& job, const ResourcePool& pool) {
  const kube::ObjectPtr pod = pass.Pod(ProfilerName(job.name(), pool.name));
  if (pod == nullptr) return CreateProfiler(pass, job, pool);
  if (pass.IsTerminating(*pod) || !WorkerHasEnded(*pod)) return absl::OkStatus();
  return WorkerHasSucceeded(*pod) ? StoreProfile(pass, job, pool, *pod) : HandleFailedProfiler(pass, job, *pod);
}

}  // namespace

absl::StatusOr<std::map<std::string, model::Profile>> StoredProfiles(Pass& pass,
                                                                     const std::vector<std::string>& pools) {
  MEDLEY_ASSIGN_OR_RETURN(const auto maps, pass.Ask(ReadProfiles{pass.profile_hash, pools}));
  std::map<std::string, model::Profile> profiles;
  for (const auto& [pool, map] : maps) {
    auto profile = ParseProfile(map->String("/data/profile.json"), pool);
    if (profile.ok()) {
      profiles.emplace(pool, *std::move(profile));
      continue;
    }
    pass.Publish(WriteLog{true, "the profile in ConfigMap " + map->key().ToString() + " is unreadable: measuring again",
                          base::ToString(profile.status())});
    MEDLEY_ASSIGN_OR_RETURN(const absl::Status deleted,
                            pass.Ask(DeleteObject{kube::resources::ConfigMaps(), map->key(), map->uid(), ""}));
    if (!deleted.ok() && !kube::IsNotFound(deleted)) return deleted;
  }
  return profiles;
}

absl::StatusOr<Measured> MeasureProfile(Pass& pass, const TrainingJob& job, const UsablePools& pools) {
  std::vector<std::string> names;
  for (const PoolView& view : pools.pools) names.push_back(view.pool.name);
  MEDLEY_ASSIGN_OR_RETURN(const auto stored, StoredProfiles(pass, names));
  std::vector<model::Profile> found;
  std::vector<kube::ObjectPtr> needless;
  std::string waiting;
  int missing = 0;
  pass.memory.profiling.wanted.clear();
  for (const PoolView& view : pools.pools) {
    const std::string profiler = ProfilerName(job.name(), view.pool.name);
    const kube::ObjectPtr pod = pass.Pod(profiler);
    if (const auto profile = stored.find(view.pool.name); profile != stored.end()) {
      found.push_back(profile->second);
      if (pod != nullptr) needless.push_back(pod);  // another job's profiler was faster
      continue;
    }
    // A pool without a unit cannot be measured: it is left out until it has one.
    if (view.units <= 0 && pod == nullptr) continue;
    waiting += (waiting.empty() ? "" : ", ") + view.pool.name;
    pass.memory.profiling.wanted.insert(profiler);
    if (missing++ < pass.options.parallel_profilers) MEDLEY_RETURN_IF_ERROR(RunProfiler(pass, job, view.pool));
    if (pass.memory.status.current.finished()) return Measured();
  }
  MEDLEY_RETURN_IF_ERROR(DeleteSome(pass, needless));
  if (missing > 0) {
    return Measured{std::nullopt, Unplanned(ConditionStatus::kUnknown, "Profiling",
                                            "The operator measures the layers on: " + waiting)};
  }
  if (found.empty()) {
    return Measured{std::nullopt, Unplanned(ConditionStatus::kFalse, "Infeasible",
                                            "no pool has a free unit to measure the layers on: needed 1, free 0; add "
                                            "nodes, raise a pool's spec.limit or the namespace's ResourceQuota; "
                                            "bounded by: " +
                                                Bounds(pools))};
  }
  MEDLEY_ASSIGN_OR_RETURN(model::Profile merged, MergeProfiles(found));
  return Measured{std::move(merged), std::nullopt};
}

}  // namespace medley::ops::lifecycle

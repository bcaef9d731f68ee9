#include "cli/cluster/job_plan_request.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/fingerprint.h"
#include "common/model/profile.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"
#include "operator/api/training_job.h"
#include "operator/records/interruptions.h"
#include "operator/records/memory_check.h"
#include "operator/records/plan_request.h"
#include "operator/records/profile_store.h"

namespace medley::cli {
namespace {

double SecondsSince(const std::string& time, base::WallTime now) {
  const auto parsed = base::ParseTime(time);
  return parsed.ok() ? std::max(0.0, base::ToSeconds(now - *parsed)) : 0;
}

// The number of units of the pool that the job's own pods hold.
int Held(const JobObjects& objects, const std::string& pool) {
  return static_cast<int>(std::count_if(objects.pods.begin(), objects.pods.end(), [&](const kube::Object& pod) {
    const std::string phase = pod.String("/status/phase");
    return pod.label(ops::kPoolLabel) == pool && !pod.deleting() && phase != "Succeeded" && phase != "Failed";
  }));
}

struct Usable {
  std::vector<ops::ResourcePool> pools;
  std::vector<int> units;
  std::vector<model::Profile> profiles;
};

// Returns why the pool cannot be used for planning, or "".
std::string Unusable(const JobObjects& objects, const ops::ResourcePool& pool, const std::string& ns) {
  if (!pool.Allows(ns)) return "namespace '" + ns + "' is not allowed to use it";
  if (pool.usd_per_unit_hour <= 0 && !pool.offering) return "it has no price";
  if (!objects.profiles.contains(pool.name)) return "the job's layers have not been measured on it";
  return "";
}

// The zone that the running plan's pods of the pool are pinned to; empty: none.
std::string KeptZone(const JobPlanRequest& job_request, const std::string& pool) {
  if (!job_request.record || job_request.status.finished()) return "";
  const std::map<std::string, std::string> zones = job_request.record->Zones();
  const auto zone = zones.find(pool);
  return zone == zones.end() ? "" : zone->second;
}

absl::Status AddPool(const JobObjects& objects, const kube::Object& object, const std::string& ns, bool named,
                     bool keep_offerings, Usable& usable, JobPlanRequest& job_request) {
  MEDLEY_ASSIGN_OR_RETURN(ops::ResourcePool pool, ops::ResourcePool::FromObject(object));
  const ops::PoolStatus status = ops::PoolStatus::FromJson(object.At("/status"));
  const std::string kept_zone = KeptZone(job_request, pool.name);
  if (keep_offerings && pool.offering) {
    if (!kept_zone.empty()) pool.offering->zone = kept_zone;
  } else {
    if (status.usd_per_unit_hour > 0) pool.usd_per_unit_hour = status.usd_per_unit_hour;
    if (pool.offering && !kept_zone.empty() && kept_zone != status.zone) {
      // The status has the price of the cheapest zone; that of the job's zone was recorded with its plan.
      const auto planned = job_request.record->usd_per_unit_hour.find(pool.name);
      if (planned != job_request.record->usd_per_unit_hour.end()) pool.usd_per_unit_hour = planned->second;
      job_request.notes.push_back(
          fmt::format("pool {} is priced as planned, in zone {}, which the job keeps", pool.name, kept_zone));
    }
    pool.offering.reset();
    job_request.price_time = std::max(job_request.price_time, status.price_time);
  }
  const std::string why = Unusable(objects, pool, ns);
  if (!why.empty()) {
    if (named || pool.Allows(ns)) job_request.notes.push_back("pool " + pool.name + " is left out of the plan: " + why);
    return absl::OkStatus();
  }
  auto profile = ops::ParseProfile(objects.profiles.at(pool.name).String("/data/profile.json"), pool.name);
  if (!profile.ok()) return base::Annotate(profile.status(), "the stored profile of pool " + pool.name);
  usable.profiles.push_back(*std::move(profile));
  usable.units.push_back(std::min(pool.limit, status.units.free + Held(objects, pool.name)));
  usable.pools.push_back(std::move(pool));
  return absl::OkStatus();
}

absl::StatusOr<Usable> UsablePools(const JobObjects& objects, const ops::TrainingJob& job, bool keep_offerings,
                                   JobPlanRequest& job_request) {
  Usable usable;
  const bool named = !job.pools.empty();
  std::vector<std::string> wanted = job.pools;
  if (!named) {
    for (const kube::Object& pool : objects.pools) wanted.push_back(pool.key().name);
  }
  for (const std::string& name : wanted) {
    const auto pool = std::find_if(objects.pools.begin(), objects.pools.end(),
                                   [&](const kube::Object& p) { return p.key().name == name; });
    if (pool == objects.pools.end()) {
      job_request.notes.push_back("pool " + name + " is left out of the plan: no ResourcePool has this name");
      continue;
    }
    MEDLEY_RETURN_IF_ERROR(AddPool(objects, *pool, job.key().ns, named, keep_offerings, usable, job_request));
  }
  if (!usable.pools.empty()) return usable;
  std::string why;
  for (const std::string& note : job_request.notes) why += (why.empty() ? "" : "; ") + note;
  return base::FailedPrecondition("cannot plan job {}: no ResourcePool can be used: {}", job.key().ToString(),
                                  why.empty() ? "none allows its namespace" : why);
}

ops::JobProgress Progress(const ops::JobStatus& status, base::WallTime now) {
  ops::JobProgress progress;
  if (status.observed && status.observed->samples_total > 0) {
    progress.remaining_samples =
        static_cast<double>(std::max<int64_t>(1, status.observed->samples_total - status.observed->samples));
  }
  // A finished job is planned as if it started from the beginning.
  if (status.finished()) return ops::JobProgress();
  progress.elapsed_seconds = SecondsSince(status.start_time, now);
  progress.spent_usd = status.cost ? status.cost->spent_usd : 0;
  return progress;
}

}  // namespace

absl::StatusOr<JobPlanRequest> BuildJobPlanRequest(const JobObjects& objects, bool keep_offerings, base::WallTime now) {
  const std::string name = "job " + objects.job.key().ToString();
  JobPlanRequest job_request;
  const auto job = ops::TrainingJob::FromObject(objects.job);
  if (!job.ok()) return base::Annotate(job.status(), name);
  job_request.status = ops::JobStatus::FromJson(objects.job.At("/status"));
  if (objects.plan) {
    auto record = ops::ReadPlanRecord(*objects.plan);
    if (record.ok()) job_request.record = *std::move(record);
    if (!record.ok()) job_request.notes.push_back(base::Message(record.status()));
  }
  MEDLEY_ASSIGN_OR_RETURN(const Usable usable, UsablePools(objects, *job, keep_offerings, job_request));
  const auto profile = ops::MergeProfiles(usable.profiles);
  if (!profile.ok()) return base::Annotate(profile.status(), name);
  std::vector<ops::PoolOffer> offers;
  for (size_t i = 0; i < usable.pools.size(); ++i) offers.push_back({&usable.pools[i], usable.units[i]});
  for (const ops::ResourcePool& pool : usable.pools) {
    const double share = pool.usd_per_unit_hour > 0 ? ops::LostShareOf(*job, pool) : 0;
    if (share > 0) {
      job_request.notes.push_back(fmt::format(
          "pool {} is priced {:.1f} % higher, because its units are taken away now and then", pool.name, 100 * share));
    }
  }
  job_request.request = ops::BuildPlanRequest(*job, *profile, offers, Progress(job_request.status, now));
  ops::LimitByUnitMemory(*job, *profile, offers, job_request.request);
  if (job_request.status.plan) job_request.catalog_revision = job_request.status.plan->catalog_revision;
  if (job_request.status.finished())
    job_request.notes.push_back("the job has finished: it is planned as if it started from the beginning");
  const double elapsed = Progress(job_request.status, now).elapsed_seconds;
  if (job->objective.deadline_seconds > 0 && elapsed >= job->objective.deadline_seconds)
    job_request.notes.push_back("the job's deadline has passed: no plan can meet it");
  return job_request;
}

absl::StatusOr<JobObjects> ReadJobObjects(const Cluster& cluster, const std::string& name) {
  JobObjects objects;
  MEDLEY_ASSIGN_OR_RETURN(objects.job, GetJob(cluster, name));
  const kube::Key key = objects.job.key();
  MEDLEY_ASSIGN_OR_RETURN(objects.pools, ListAll(cluster, ops::ResourcePools(), {}));
  MEDLEY_ASSIGN_OR_RETURN(objects.pods,
                          ListAll(cluster, kube::resources::Pods(),
                                  {.ns = key.ns, .label_selector = std::string(ops::kJobNameLabel) + "=" + key.name}));
  MEDLEY_ASSIGN_OR_RETURN(const ops::TrainingJob job, ops::TrainingJob::FromObject(objects.job));
  const std::string hash = model::ProfileHash(job.spec);
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::Object> maps,
                          ListAll(cluster, kube::resources::ConfigMaps(),
                                  {.ns = key.ns, .label_selector = std::string(ops::kProfileLabel) + "=" + hash}));
  for (const kube::Object& map : maps) objects.profiles[map.label(ops::kPoolLabel)] = map;
  auto plan = cluster.client->Get(kube::resources::ConfigMaps(), {key.ns, ops::PlanConfigMapName(key.name)});
  if (plan.ok()) {
    const auto owner = plan->controller();
    if (owner && owner->uid == objects.job.uid()) objects.plan = *std::move(plan);
  } else if (!kube::IsNotFound(plan.status())) {
    return ExplainApiError(plan.status(), cluster);
  }
  return objects;
}

}  // namespace medley::cli

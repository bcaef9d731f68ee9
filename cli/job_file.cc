#include "cli/job_file.h"

#include <algorithm>
#include <vector>

#include "cli/run/manifests.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "operator/api/resource_pool.h"
#include "operator/api/training_job.h"
#include "operator/records/plan_request.h"

namespace medley::cli {

bool IsJobFile(const std::string& text) {
  const auto documents = document::ParseYamlStream(text);
  return documents.ok() && std::any_of(documents->begin(), documents->end(), [](const kube::Json& document) {
           return document.is_object() && kube::Object(document).kind() == "TrainingJob";
         });
}

absl::StatusOr<model::PlanRequest> ReadJobFile(const std::string& file, const model::Profile& profile) {
  MEDLEY_ASSIGN_OR_RETURN(const Manifests manifests, LoadManifests(file));
  const auto job = ops::TrainingJob::FromObject(manifests.job);
  if (!job.ok()) return base::Annotate(job.status(), file);
  std::vector<ops::ResourcePool> pools;
  for (const kube::Object& object : manifests.pools) {
    auto pool = ops::ResourcePool::FromObject(object);
    if (!pool.ok()) return base::Annotate(pool.status(), file);
    const bool wanted = job->pools.empty() || std::count(job->pools.begin(), job->pools.end(), pool->name) > 0;
    if (wanted && pool->Allows(manifests.job.key().ns)) pools.push_back(*std::move(pool));
  }
  for (const std::string& name : job->pools) {
    const auto same = [&](const ops::ResourcePool& pool) { return pool.name == name; };
    if (std::any_of(pools.begin(), pools.end(), same)) continue;
    return base::InvalidArgument("{}: spec.resources.pools: the file has no ResourcePool '{}' that the job may use",
                                 file, name);
  }
  std::vector<ops::PoolOffer> offers;
  for (const ops::ResourcePool& pool : pools) offers.push_back({&pool, pool.limit});
  return ops::BuildPlanRequest(*job, profile, offers, {});
}

}  // namespace medley::cli

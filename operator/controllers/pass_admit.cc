// Admission: what the API server could not check, and the objects that every job needs.
#include <algorithm>
#include <set>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/api/validate.h"
#include "operator/builders/objects.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {
namespace {

std::string Join(const std::vector<std::string>& sentences) {
  std::string joined;
  for (const std::string& sentence : sentences) joined += (joined.empty() ? "" : "; ") + sentence;
  return joined;
}

std::string NameList(const std::vector<ResourcePool>& pools) {
  std::string list;
  for (const ResourcePool& pool : pools) list += (list.empty() ? "" : ", ") + pool.name;
  return list.empty() ? "there are none" : "there are: " + list;
}

// The spec as it was when the job was admitted; null before.
kube::Json AdmittedSpec(const JobDeps& deps, const kube::Key& key) {
  const kube::ObjectPtr map = deps.stores.config_maps.Get({key.ns, SpecConfigMapName(key.name)});
  if (map == nullptr) return nullptr;
  kube::Json spec = kube::Json::parse(map->String("/data/spec.json"), nullptr, false);
  return spec.is_object() ? spec : kube::Json();
}

}  // namespace

JobPass::JobPass(const JobDeps& deps, kube::ObjectPtr object, JobMemory& memory, std::stop_token stop)
    : deps_(deps),
      held_(std::move(object)),
      object_(*held_),
      memory_(memory),
      stop_(std::move(stop)),
      now_(deps.clock.Now()),
      steady_(deps.clock.Steady()) {}

absl::StatusOr<Result> JobPass::Run() {
  if (memory_.uid != object_.uid()) {
    memory_ = JobMemory();
    memory_.uid = object_.uid();
    first_ = true;
  }
  if (!memory_.written_status) {
    const kube::ObjectPtr current = Current(TrainingJobs(), object_.key(), held_);
    const bool same = current != nullptr && current->uid() == object_.uid();
    memory_.written_status.emplace(same ? current->At("/status") : object_.At("/status"));
  }
  status_ = memory_.status ? *memory_.status : JobStatus::FromJson(memory_.written_status->Unpack());
  std::set<std::string> there;
  for (const kube::ObjectPtr& pod : Pods()) there.insert(pod->uid());
  std::erase_if(memory_.deleted, [&](const std::string& uid) { return !there.contains(uid); });
  status_.selector = std::string(kJobNameLabel) + "=" + object_.key().name;
  const absl::Status done = Steps();
  memory_.status = status_;
  TellMetrics();
  // The status tells of what was done even where a later step failed.
  const absl::Status written = object_.deleting() ? absl::OkStatus() : WriteStatus();
  MEDLEY_RETURN_IF_ERROR(done);
  MEDLEY_RETURN_IF_ERROR(written);
  return Result{again_};
}

absl::Status JobPass::Steps() {
  const bool admitted = Admit();
  if (job_ && !job_->managed_by_us()) return absl::OkStatus();
  if (object_.deleting()) return Finalize();
  if (status_.finished()) return AfterFinished();
  if (!admitted) return absl::OkStatus();
  status_.observed_generation = object_.generation();
  MEDLEY_RETURN_IF_ERROR(EnsureFinalizer());
  ReadRecord();
  if (job_->run_policy.suspend) return Suspend();
  Resume();
  if (status_.start_time.empty()) status_.start_time = base::FormatTime(now_);
  if (DeadlinePassed()) {
    return Finish(false, "DeadlineExceeded", "the job was active for longer than spec.runPolicy.activeDeadlineSeconds");
  }
  MEDLEY_RETURN_IF_ERROR(EnsureBaseObjects());
  MEDLEY_RETURN_IF_ERROR(record_ ? RunPlan() : MakeFirstPlan());
  Again(Settled() ? deps_.options.settled_recheck : deps_.options.recheck);
  return absl::OkStatus();
}

bool JobPass::Admit() {
  std::vector<std::string> broken = ValidateTrainingJob(object_);
  auto job = TrainingJob::FromObject(object_);
  if (job.ok()) {
    job_ = *std::move(job);
    const kube::Json admitted = AdmittedSpec(deps_, job_->key());
    if (admitted.is_object()) {
      for (std::string& sentence : ValidateTrainingJobUpdate(admitted, object_.At("/spec"))) {
        broken.push_back(std::move(sentence));
      }
    }
  } else {
    broken.push_back(base::Message(job.status()));
  }
  if (job_ && (!job_->managed_by_us() || object_.deleting() || status_.finished())) return false;
  std::string reason = "InvalidSpec";
  if (broken.empty()) {
    const auto spec = model::ParseJobSpec(job_->spec.dump());
    const absl::Status sense = spec.ok() ? model::Validate(*spec) : spec.status();
    if (sense.ok()) return true;
    reason = "InvalidModel";
    broken.push_back(base::Message(sense));
  }
  spec_ok_ = false;
  status_.observed_generation = object_.generation();
  // What already runs goes on with what it was admitted with; only the new wish is refused.
  SetCondition(kPlannedCondition, ConditionStatus::kFalse, reason, Join(broken));
  return job_.has_value() && memory_.record.has_value();
}

absl::Status JobPass::EnsureFinalizer() {
  const kube::Json& finalizers = object_.At("/metadata/finalizers");
  if (finalizers.is_array() && std::find(finalizers.begin(), finalizers.end(), kFinalizer) != finalizers.end()) {
    return absl::OkStatus();
  }
  kube::Json list = finalizers.is_array() ? finalizers : kube::Json::array();
  list.push_back(kFinalizer);
  const kube::Json patch = {
      {"metadata", {{"finalizers", std::move(list)}, {"resourceVersion", object_.resource_version()}}}};
  const auto patched = deps_.client.Patch(TrainingJobs(), object_.key(), kube::PatchType::kMerge, patch);
  // A conflict: the cache is behind, and the newer object brings another pass.
  if (kube::IsConflict(patched.status())) return absl::OkStatus();
  return patched.status();
}

const ResourcePool* JobPass::Pools::Find(std::string_view name) const {
  for (const ResourcePool& pool : pools) {
    if (pool.name == name) return &pool;
  }
  return nullptr;
}

std::optional<JobPass::Pools> JobPass::UsablePools(bool keep_zones) {
  Pools usable;
  std::vector<ResourcePool> all;
  for (const kube::ObjectPtr& object : deps_.stores.pools.List()) {
    auto pool = ResourcePool::FromObject(*object);
    if (pool.ok() && ValidateResourcePool(*object).empty() && !object->deleting()) all.push_back(*std::move(pool));
  }
  const auto refuse = [&](ConditionStatus status, const char* reason, const std::string& message) {
    SetCondition(kPlannedCondition, status, reason, message);
    return std::nullopt;
  };
  const auto catalog = deps_.scheduler.catalog();
  const bool named = !job_->pools.empty();
  std::vector<std::string> wanted = job_->pools;
  if (!named) {
    for (const ResourcePool& pool : all) wanted.push_back(pool.name);
  }
  std::string unpriced;
  std::set<std::string> only_held;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto pool = std::find_if(all.begin(), all.end(), [&](const ResourcePool& p) { return p.name == wanted[i]; });
    if (pool == all.end() || !pool->Allows(job_->key().ns)) {
      if (!named) continue;
      return refuse(ConditionStatus::kFalse, "PoolNotFound",
                    fmt::format("spec.resources.pools[{}]: there is no usable ResourcePool '{}' "
                                "for namespace '{}'; {}",
                                i, wanted[i], job_->key().ns, NameList(all)));
    }
    const auto price = PriceFor(*pool, catalog.get(), keep_zones);
    if (!price) {
      if (catalog == nullptr) {
        return refuse(
            ConditionStatus::kUnknown, "SchedulerUnavailable",
            fmt::format("the price of pool '{}' is not known: the scheduling service does not answer", pool->name));
      }
      unpriced = fmt::format("spec.resources.pools: ResourcePool '{}' has no price: {}", pool->name,
                             WhyUnpriced(*pool, *catalog));
      if (named) return refuse(ConditionStatus::kFalse, "PoolUnpriced", unpriced);
      continue;
    }
    usable.prices[pool->name] = price->price.usd_per_unit_hour;
    usable.paid[pool->name] = price->paid;
    usable.zones[pool->name] = price->price.pin;
    if (price->cheaper) usable.cheaper[pool->name] = price->cheaper->usd_per_unit_hour;
    if (price->only_held) only_held.insert(pool->name);
    usable.pools.push_back(*pool);
  }
  if (usable.pools.empty() && !unpriced.empty()) return refuse(ConditionStatus::kFalse, "PoolUnpriced", unpriced);
  if (usable.pools.empty()) {
    return refuse(ConditionStatus::kFalse, "PoolNotFound",
                  fmt::format("spec.resources.pools: no ResourcePool may be used from namespace '{}'; {}",
                              job_->key().ns, NameList(all)));
  }
  if (!job_->server_pool.empty() && usable.Find(job_->server_pool) == nullptr) {
    return refuse(ConditionStatus::kFalse, "PoolNotFound",
                  fmt::format("spec.resources.serverPool: there is no usable ResourcePool '{}'; {}", job_->server_pool,
                              NameList(all)));
  }
  for (const ResourcePool& pool : usable.pools) {
    const std::string& zone = usable.zones[pool.name];
    JobUnits units = UnitsFor(pool, zone);
    if (only_held.contains(pool.name)) {  // implies a record
      const auto held = std::count_if(record_->slots.begin(), record_->slots.end(),
                                      [&](const MemberSlot& slot) { return slot.pool == pool.name; });
      if (held < units.units) units = {static_cast<int>(held), "units that the job holds of pool " + pool.name};
    }
    usable.offers.push_back({&pool, units.units, std::move(units.bound), usable.prices[pool.name], zone});
  }
  return usable;
}

}  // namespace medley::ops

#include "operator/controllers/profile_reconciler.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/job_spec.h"
#include "kube/errors.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_world.h"
#include "operator/lifecycle/lifecycle.h"
#include "operator/records/profile_store.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kCacheRetry = base::milliseconds(200);

// A job that is over or stopped needs no profile; one that keeps its first plan needs none once it has a plan.
bool WantsProfiles(const kube::Object& object, const TrainingJob& job) {
  if (object.deleting() || job.run_policy.suspend || !ManagedByThisOperator(object)) return false;
  const JobStatus status = JobStatus::FromJson(object.At("/status"));
  return !status.finished() && (job.elasticity.enabled || !status.plan);
}

bool MayUse(const TrainingJob& job, const ResourcePool& pool) {
  const bool named = std::find(job.pools.begin(), job.pools.end(), pool.name) != job.pools.end();
  return pool.Allows(job.key().ns) && (named || job.pools.empty());
}

std::string HashOf(const TrainingJob& job) {
  const auto spec = model::ParseJobSpec(job.spec.dump());
  return spec.ok() && model::Validate(*spec).ok() ? model::ProfileHash(*spec) : "";
}

bool IsOlder(const kube::Object& a, const kube::Object& b) {
  return std::pair(a.String("/metadata/creationTimestamp"), a.key().name) <
         std::pair(b.String("/metadata/creationTimestamp"), b.key().name);
}

int HeldUnits(const JobDeps& deps, const kube::Object& job, const std::string& pool) {
  const auto pods = deps.stores.pods.ByIndex("owner", job.uid());
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const kube::ObjectPtr& pod) {
    return pod->label(kPoolLabel) == pool && !pod->deleting();
  }));
}

}  // namespace

std::string ProfileIndexValue(const std::string& ns, const std::string& hash) { return ns + "/" + hash; }

std::vector<std::string> ProfilesOfJob(const kube::Object& object) {
  const auto job = TrainingJob::FromObject(object);
  if (!job.ok()) return {};
  const std::string hash = HashOf(*job);
  if (hash.empty()) return {};
  return {ProfileIndexValue(object.key().ns, hash)};
}

ProfileReconciler::ProfileReconciler(JobDeps deps, profiling::Options options, profiling::Board& board,
                                     std::function<void(const ProfileId&)> changed)
    : deps_(std::move(deps)), options_(std::move(options)), board_(board), changed_(std::move(changed)) {}

std::vector<kube::Key> ProfileReconciler::KeysOf(const kube::Object& object) const {
  std::vector<kube::Key> keys;
  const auto job = TrainingJob::FromObject(object);
  if (!job.ok()) return keys;
  const std::string hash = HashOf(*job);
  if (hash.empty()) return keys;
  for (const kube::ObjectPtr& pool : deps_.stores.pools.List()) {
    keys.push_back(KeyOf({object.key().ns, hash, pool->key().name}));
  }
  return keys;
}

profiling::World ProfileReconciler::Observe(const ProfileId& id) {
  profiling::World world;
  world.now = deps_.clock.Now();
  world.steady = deps_.clock.Steady();
  const kube::ObjectPtr map = deps_.stores.config_maps.Get({id.ns, ProfileConfigMapName(id.hash, id.pool)});
  world.stored = map != nullptr && ParseProfile(map->String("/data/profile.json"), id.pool).ok();
  for (const kube::ObjectPtr& pod :
       deps_.stores.pods.ByIndex(kProfileIndex, ProfileIndexValue(id.ns, id.hash))) {
    if (pod->label(kPoolLabel) == id.pool) world.pods.push_back(pod);
  }
  std::sort(world.pods.begin(), world.pods.end(), [](const auto& a, const auto& b) { return IsOlder(*a, *b); });
  const kube::ObjectPtr pool = deps_.stores.pools.Get({"", id.pool});
  if (pool == nullptr || pool->deleting()) return world;
  kube::ObjectPtr oldest;
  for (const kube::ObjectPtr& object : deps_.stores.jobs.ByIndex(kProfileIndex, ProfileIndexValue(id.ns, id.hash))) {
    if (oldest != nullptr && IsOlder(*oldest, *object)) continue;
    const lifecycle::JobInput input = ReadJobInput(deps_, object);
    if (!input.problems.empty() || !input.job || !WantsProfiles(*object, *input.job)) continue;
    const lifecycle::PoolsView pools = ReadPoolsView(deps_, *input.job, {{id.pool}, true, {}});
    const auto view = std::find_if(pools.pools.begin(), pools.pools.end(),
                                   [&](const lifecycle::PoolView& each) { return each.pool.name == id.pool; });
    if (view == pools.pools.end() || !view->usd_per_unit_hour || !MayUse(*input.job, view->pool)) continue;
    oldest = object;
    world.job = input.job;
    world.pool = view->pool;
    world.free_units = view->units - HeldUnits(deps_, *object, id.pool);
    world.bound = view->bound;
  }
  return world;
}

absl::Status ProfileReconciler::CarryOut(const ProfileId& id, const profiling::World& world,
                                         const profiling::Decision& decision) {
  using Step = profiling::Decision::Step;
  for (const profiling::Event& event : decision.events) {
    deps_.events.Record(world.job->object, event.warning ? EventRecorder::Type::kWarning : EventRecorder::Type::kNormal,
                        event.reason, event.message);
  }
  switch (decision.step) {
    case Step::kNone:
    case Step::kReadLog:
      return absl::OkStatus();
    case Step::kCreatePod: {
      // The cache may not show a profile that was stored a moment ago. Measuring takes seconds and costs money, so the
      // API server itself is asked first.
      const kube::Key key{id.ns, ProfileConfigMapName(id.hash, id.pool)};
      const auto stored = deps_.client.Get(kube::resources::ConfigMaps(), key);
      if (stored.ok() && ParseProfile(stored->String("/data/profile.json"), id.pool).ok()) return absl::OkStatus();
      if (!stored.ok() && !kube::IsNotFound(stored.status())) return stored.status();
      kube::Object pod = ProfilerPod(*world.job, *world.pool, options_.worker);
      pod.SetLabel(kProfileLabel, id.hash);
      const absl::Status made = deps_.client.Create(kube::resources::Pods(), pod).status();
      if (made.ok()) deps_.metrics.CountCreatedPods(1);
      return made.ok() || kube::IsAlreadyExists(made) ? absl::OkStatus()
                                                      : base::Annotate(made, "create pod " + pod.key().ToString());
    }
    case Step::kDeletePods:
      for (const kube::ObjectPtr& pod : world.pods) {
        if (pod->deleting()) continue;
        const absl::Status deleted = deps_.client.Delete(kube::resources::Pods(), pod->key(), {.uid = pod->uid()});
        if (!deleted.ok() && !kube::IsNotFound(deleted) && !kube::IsConflict(deleted)) {
          return base::Annotate(deleted, "delete pod " + pod->key().ToString());
        }
      }
      return absl::OkStatus();
    case Step::kStore: {
      const kube::Object map = ProfileConfigMap(id.ns, id.hash, id.pool, decision.profile);
      auto written = deps_.client.Create(kube::resources::ConfigMaps(), map).status();
      if (kube::IsAlreadyExists(written)) written = deps_.client.Update(kube::resources::ConfigMaps(), map).status();
      return base::Annotate(written, "write ConfigMap " + map.key().ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Result> ProfileReconciler::Reconcile(const kube::Key& key) {
  const auto id = ProfileIdOf(key);
  if (!id) return Result{};
  std::shared_ptr<profiling::Memory> memory;
  {
    base::MutexLock lock(mutex_);
    std::shared_ptr<profiling::Memory>& slot = memories_[*id];
    if (slot == nullptr) slot = std::make_shared<profiling::Memory>();
    memory = slot;
  }
  profiling::World world = Observe(*id);
  profiling::Decision decision = profiling::Decide(world, *memory, options_);
  if (decision.step == profiling::Decision::Step::kReadLog) {
    const std::string path = kube::resources::Pods().Path(id->ns, world.pods.front()->key().name, "log") +
                             "?container=" + kWorkerContainer;
    world.log = deps_.client.GetRaw(path);
    if (!world.log->ok() && !kube::IsNotFound(world.log->status())) {
      return base::Annotate(world.log->status(), "read the log of pod " + world.pods.front()->key().ToString());
    }
    decision = profiling::Decide(world, *memory, options_);
  }
  MEDLEY_RETURN_IF_ERROR(CarryOut(*id, world, decision));
  *memory = decision.memory;
  if (board_.Set(*id, decision.progress)) changed_(*id);
  if (!decision.progress && world.pods.empty()) {
    base::MutexLock lock(mutex_);
    memories_.erase(*id);
  }
  if (decision.step == profiling::Decision::Step::kCreatePod) return Result{kCacheRetry};
  return Result{decision.requeue_after};
}

}  // namespace medley::ops

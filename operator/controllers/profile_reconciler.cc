#include "operator/controllers/profile_reconciler.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/model/fingerprint.h"
#include "common/model/job_spec.h"
#include "kube/errors.h"
#include "kube/pod.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/worker_state.h"
#include "operator/builders/objects.h"
#include "operator/builders/pods.h"
#include "operator/capacity/unit_needs.h"
#include "operator/controllers/job_units.h"
#include "operator/controllers/job_world.h"
#include "operator/controllers/pod_creation.h"
#include "operator/lifecycle/lifecycle.h"
#include "operator/records/profile_store.h"

namespace medley::ops {
namespace {

constexpr base::nanoseconds kCacheRetry = base::milliseconds(200);
// A pod that was created and that the cache does not show after this time does not exist any more.
constexpr base::nanoseconds kCachePatience = base::seconds(30);

bool MayUse(const TrainingJob& job, const ResourcePool& pool) {
  const bool named = std::find(job.pools.begin(), job.pools.end(), pool.name) != job.pools.end();
  return pool.Allows(job.key().ns) && (named || job.pools.empty());
}

bool IsOlder(const kube::Object& a, const kube::Object& b) {
  return std::pair(a.String("/metadata/creationTimestamp"), a.key().name) <
         std::pair(b.String("/metadata/creationTimestamp"), b.key().name);
}

// The API server or a kubelet did not answer; it may the next time.
bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status) ||
         absl::IsInternal(status) || absl::IsUnknown(status) || absl::IsAborted(status);
}

// Pods of all namespaces are seen, also those of jobs that another operator manages, perhaps one for another namespace.
// The job deletes pods that copy a profiler.
bool IsOwn(const JobDeps& deps, const kube::Object& pod) {
  const auto owner = pod.controller();
  if (!owner || pod.annotation(kUnsignedAnnotation) == kCopiedSignature) return false;
  const kube::ObjectPtr job = deps.stores.jobs.Get({pod.key().ns, owner->name});
  return job != nullptr && job->uid() == owner->uid && ManagedByThisOperator(*job);
}

// Owns the unit of the profiler in CapacityView; differs from every UID of a job.
std::string OwnerId(const ProfileId& id) { return "profile " + KeyOf(id).ToString(); }

int UnitsHeldBy(const JobDeps& deps, const kube::Object& job, const std::string& pool) {
  const auto pods = deps.stores.pods.ByIndex("owner", job.uid());
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const kube::ObjectPtr& pod) {
    return IsOfKnownJob(deps, *pod) && pod->key().ns == job.key().ns && pod->label(kPoolLabel) == pool &&
           !pod->deleting();
  }));
}

// Errors: another client has changed the profile, or it is unreadable.
absl::StatusOr<model::Profile> BelievedProfile(const JobDeps& deps, const kube::Object& map, const std::string& pool) {
  MEDLEY_RETURN_IF_ERROR(deps.options.record_keys.Check(RecordKind::kProfile, "", map));
  return ParseProfile(map.String("/data/profile.json"), pool);
}

kube::Object SignedProfile(const JobDeps& deps, const ProfileId& id, const std::string& profile) {
  kube::Object map = ProfileConfigMap(id.ns, id.hash, id.pool, profile);
  deps.options.record_keys.Sign(RecordKind::kProfile, "", map);
  return map;
}

}  // namespace

std::string ProfileHashOf(const kube::Object& object) {
  const auto job = TrainingJob::FromObject(object);
  if (!job.ok()) return "";
  const auto spec = model::ParseJobSpec(kube::Dump(job->spec));
  return spec.ok() && model::Validate(*spec).ok() ? model::ProfileHash(job->spec) : "";
}

std::string ProfileIndexValue(const std::string& ns, const std::string& hash) { return ns + "/" + hash; }

std::vector<std::string> ProfileOfJob(const kube::Object& job) {
  const std::string hash = ProfileHashOf(job);
  return hash.empty() ? std::vector<std::string>() : std::vector{ProfileIndexValue(job.key().ns, hash)};
}

std::vector<std::string> ProfileOfPod(const kube::Object& pod) {
  const std::string hash = pod.label(kProfileLabel);
  return hash.empty() ? std::vector<std::string>() : std::vector{ProfileIndexValue(pod.key().ns, hash)};
}

std::vector<kube::Key> ProfileKeyByLabels(const kube::Object& object) {
  const ProfileId id{object.key().ns, object.label(kProfileLabel), object.label(kPoolLabel)};
  return id.hash.empty() || id.pool.empty() ? std::vector<kube::Key>() : std::vector{KeyOf(id)};
}

bool MayWantProfiles(const kube::Object& job) {
  const bool stopped = job.At("/spec/runPolicy/suspend") == kube::Json(true);
  if (job.deleting() || stopped || !ManagedByThisOperator(job)) return false;
  const JobStatus status = JobStatus::FromJson(job.At("/status"));
  const bool elastic = job.At("/spec/elasticity/enabled") != kube::Json(false);
  const bool planned = status.conditions.IsTrue(kPlannedCondition) && status.plan;
  // A job is planned once the objects exist that a profiler pod mounts.
  const bool started = !status.start_time.empty() && status.conditions.Find(kPlannedCondition) != nullptr;
  return started && !status.finished() && (elastic || !planned);
}

ProfileReconciler::ProfileReconciler(JobDeps deps, profiling::Options options,
                                     std::function<void(const ProfileId&)> changed)
    : deps_(std::move(deps)), options_(std::move(options)), changed_(std::move(changed)) {}

std::vector<kube::Key> ProfileReconciler::KeysOf(const kube::Object& object) const {
  std::vector<kube::Key> keys;
  const std::string hash = ProfileHashOf(object);
  if (hash.empty()) return keys;
  for (const kube::ObjectPtr& pool : deps_.stores.pools.List()) {
    keys.push_back(KeyOf({object.key().ns, hash, pool->key().name}));
  }
  return keys;
}

profiling::World ProfileReconciler::Observe(const ProfileId& id, const profiling::Memory& memory) {
  profiling::World world;
  world.steady = deps_.clock.Steady();
  world.now = deps_.clock.Now();
  const kube::ObjectPtr map = deps_.stores.config_maps.Get({id.ns, ProfileConfigMapName(id.hash, id.pool)});
  const absl::Status believed =
      map == nullptr ? base::NotFound("not measured") : BelievedProfile(deps_, *map, id.pool).status();
  world.stored = believed.ok();
  for (const kube::ObjectPtr& pod : deps_.stores.pods.ByIndex(kProfileIndex, ProfileIndexValue(id.ns, id.hash))) {
    if (pod->label(kPoolLabel) == id.pool && IsOwn(deps_, *pod)) world.pods.push_back(pod);
  }
  if (!world.pods.empty()) world.node_not_ready = deps_.capacity.IsDown(world.pods.front()->String("/spec/nodeName"));
  if (world.stored) return world;
  std::vector<Candidate> candidates = Candidates(id);
  world.wanted = !candidates.empty();
  std::erase_if(candidates, [](const Candidate& each) { return !each.view.usd_per_unit_hour; });
  if (candidates.empty()) return world;
  std::vector<std::string> uids;
  for (const Candidate& each : candidates) uids.push_back(each.job.object.uid());
  const std::string chosen = profiling::ChooseJob(uids, memory);
  Candidate& candidate = *std::find_if(candidates.begin(), candidates.end(),
                                       [&](const Candidate& each) { return each.job.object.uid() == chosen; });
  world.free_units = candidate.view.units - UnitsHeldBy(deps_, candidate.job.object, id.pool);
  world.bound = candidate.view.bound;
  world.pool = std::move(candidate.view.pool);
  world.job = std::move(candidate.job);
  if (map != nullptr) ReportRefused(id, *map, believed, world.job->object);
  return world;
}

void ProfileReconciler::ReportRefused(const ProfileId& id, const kube::Object& map, const absl::Status& why,
                                      const kube::Object& job) {
  {
    base::MutexLock lock(mutex_);
    std::string& reported = refused_[id];
    if (reported == map.resource_version()) return;
    reported = map.resource_version();
  }
  deps_.events.Record(job, EventRecorder::Type::kWarning, ToString(Reason::kRecordRefused),
                      fmt::format("The stored profile of pool {} is not believed and is measured again: {}.", id.pool,
                                  base::Message(why)));
}

std::vector<ProfileReconciler::Candidate> ProfileReconciler::Candidates(const ProfileId& id) const {
  std::vector<Candidate> candidates;
  std::vector<kube::ObjectPtr> jobs = deps_.stores.jobs.ByIndex(kProfileIndex, ProfileIndexValue(id.ns, id.hash));
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return IsOlder(*a, *b); });
  for (const kube::ObjectPtr& object : jobs) {
    if (!MayWantProfiles(*object)) continue;
    lifecycle::JobInput input = ReadJobInput(deps_, object);
    if (!input.job || !input.problems.empty()) continue;
    for (lifecycle::PoolView& view : ReadPoolsView(deps_, *input.job, {{id.pool}, true, {}}).pools) {
      if (view.pool.name != id.pool || !MayUse(*input.job, view.pool)) continue;
      candidates.push_back({*std::move(input.job), std::move(view)});
      break;
    }
  }
  return candidates;
}

absl::Status ProfileReconciler::DeletePods(const profiling::World& world, bool overdue) {
  for (const kube::ObjectPtr& pod : world.pods) {
    if (overdue ? !profiling::DeletionIsOverdue(*pod, world.now, options_) : pod->deleting()) continue;
    kube::DeleteOptions how{.uid = pod->uid()};
    if (overdue) how.grace_period_seconds = 0;
    const absl::Status deleted = deps_.client.Delete(kube::resources::Pods(), pod->key(), how);
    if (!deleted.ok() && !kube::IsNotFound(deleted) && !kube::IsConflict(deleted)) {
      return base::Annotate(deleted, "delete pod " + pod->key().ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status ProfileReconciler::CarryOut(const ProfileId& id, const profiling::World& world,
                                         const profiling::Decision& decision) {
  using Step = profiling::Decision::Step;
  switch (decision.step) {
    case Step::kNone:
    case Step::kReadLog:
    case Step::kCreatePod:
      return absl::OkStatus();
    case Step::kDeletePods:
    case Step::kForceDeletePods:
      return DeletePods(world, decision.step == Step::kForceDeletePods);
    case Step::kStore: {
      const kube::Object map = SignedProfile(deps_, id, decision.profile);
      auto written = deps_.client.Create(kube::resources::ConfigMaps(), map).status();
      if (kube::IsAlreadyExists(written)) written = deps_.client.Update(kube::resources::ConfigMaps(), map).status();
      return base::Annotate(written, "write ConfigMap " + map.key().ToString());
    }
  }
  return absl::OkStatus();
}

absl::Status ProfileReconciler::ReserveUnit(const ProfileId& id, const profiling::World& world) {
  const kube::Object pod = ProfilerPod(*world.job, *world.pool, options_.worker);
  PlannedUnit unit{pod.key(), std::make_shared<const ResourcePool>(*world.pool),
                   std::make_shared<const PodDemand>(deps_.capacity.Demand(pod)), false, Holder::kProfiler};
  return deps_.capacity.Reserve({world.job->key(), OwnerId(id)}, {std::move(unit)});
}

bool ProfileReconciler::HoldsUnit(const ProfileId& id, const profiling::World& world) {
  // A pod that has ended holds none: a job that is planned with its result may have the unit.
  const bool holds = std::any_of(world.pods.begin(), world.pods.end(),
                                 [](const kube::ObjectPtr& pod) { return !kube::HasEnded(*pod); });
  base::MutexLock lock(mutex_);
  const auto unseen = unseen_.find(id);
  if (unseen == unseen_.end()) return holds;
  if (world.pods.empty() && world.steady - unseen->second < kCachePatience) return true;
  unseen_.erase(unseen);
  return holds;
}

void ProfileReconciler::ReleaseUnit(const ProfileId& id) {
  deps_.capacity.Release(OwnerId(id));
  ReportFreed(deps_);
}

absl::Status ProfileReconciler::CreatePod(const ProfileId& id, const profiling::World& world) {
  // The cache may not show a profile that was stored a moment ago. Measuring takes seconds and costs money, so the API
  // server itself is asked first.
  const kube::Key key{id.ns, ProfileConfigMapName(id.hash, id.pool)};
  const auto stored = deps_.client.Get(kube::resources::ConfigMaps(), key);
  if (stored.ok() && BelievedProfile(deps_, *stored, id.pool).ok()) {
    if (ProfileKeyByLabels(*stored) == std::vector{KeyOf(id)} && !stored->label(kManagedByLabel).empty())
      return absl::OkStatus();
    // Without its labels, which another client has removed, the cache never shows it.
    const kube::Object map = SignedProfile(deps_, id, stored->String("/data/profile.json"));
    return deps_.client.Update(kube::resources::ConfigMaps(), map).status();
  }
  if (!stored.ok() && !kube::IsNotFound(stored.status())) return stored.status();
  kube::Object pod = ProfilerPod(*world.job, *world.pool, options_.worker);
  pod.SetLabel(kProfileLabel, id.hash);
  pod.SetAnnotation(kPoolVersionAnnotation, profiling::PoolVersion(*world.pool));
  pod.SetAnnotation(kLeaderTermAnnotation, std::to_string(deps_.leader_term()));
  const absl::Status made = CreateSignedPod(deps_, pod);
  if (made.ok() || kube::IsAlreadyExists(made)) {
    base::MutexLock lock(mutex_);
    unseen_[id] = world.steady;
  }
  if (!kube::IsAlreadyExists(made)) return made;
  const auto existing = deps_.client.Get(kube::resources::Pods(), pod.key());
  if (!existing.ok() || existing->label(kProfileLabel) == id.hash) return absl::OkStatus();  // the cache is behind
  return made;
}

void ProfileReconciler::TakeTurn(const ProfileId& id, const profiling::Memory& memory, profiling::World& world) {
  if (options_.max_pods <= 0) return;
  const int failures = profiling::Failures(memory);
  base::MutexLock lock(mutex_);
  with_pod_.erase(id);
  waiting_.erase(id);
  if (world.pods.empty()) {
    if (!profiling::IsReady(world, memory)) return;
    const bool full = with_pod_.size() >= static_cast<size_t>(options_.max_pods);
    const bool yields =
        std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& other) { return other.second < failures; });
    world.other_pods = full || yields;
  }
  if (world.other_pods) {
    waiting_[id] = failures;
    return;
  }
  with_pod_.insert(id);
  world.others_wait = !waiting_.empty();
}

void ProfileReconciler::ReportNoNode(const profiling::World& world) {
  const kube::Object& pool = world.pool->object;
  if (world.pool->scaling != PoolScaling::kAutoscaled || world.pods.empty()) return;
  if (!AsksOnlyForUnit(*world.pods.front(), *world.pool, "")) return;
  const bool is_new = deps_.outages.Fail(pool, "", PlacedPods(deps_, world.pool->name), deps_.clock.Now());
  if (is_new) deps_.pool_changed(world.pool->name);
}

void ProfileReconciler::ExpectAll() {
  std::set<ProfileId> ids;
  for (const kube::ObjectPtr& job : deps_.stores.jobs.List()) {
    if (!MayWantProfiles(*job)) continue;
    for (const kube::Key& key : KeysOf(*job)) {
      if (const auto id = ProfileIdOf(key)) ids.insert(*id);
    }
  }
  deps_.profiles.Expect(ids);
}

absl::StatusOr<profiling::Decision> ProfileReconciler::NextStep(const ProfileId& id, profiling::World& world,
                                                                profiling::Memory& memory) {
  using Step = profiling::Decision::Step;
  profiling::Decision decision = profiling::Decide(world, memory, options_);
  if (decision.step == Step::kReadLog) {
    const std::string path =
        kube::resources::Pods().Path(id.ns, world.pods.front()->key().name, "log") + "?container=" + kWorkerContainer;
    world.log = deps_.client.GetRaw(path);
    // Without its log a failure is a failure, but a result is worth waiting for, until the deadline of the pod.
    if (IsTransient(world.log->status()) && WorkerHasSucceeded(*world.pods.front())) {
      memory = decision.memory;
      return base::Annotate(world.log->status(), "read the log of pod " + world.pods.front()->key().ToString());
    }
    return profiling::Decide(world, memory, options_);
  }
  if (decision.step != Step::kCreatePod) return decision;
  if (ReserveUnit(id, world).ok()) return decision;
  world.free_units = 0;
  world.bound = "what other jobs and profilers have reserved";
  return profiling::Decide(world, memory, options_);
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
  profiling::World world = Observe(*id, *memory);
  TakeTurn(*id, *memory, world);
  MEDLEY_ASSIGN_OR_RETURN(profiling::Decision decision, NextStep(*id, world, *memory));
  std::optional<base::nanoseconds> requeue = decision.requeue_after;
  if (decision.step != profiling::Decision::Step::kCreatePod && !HoldsUnit(*id, world)) {
    ReleaseUnit(*id);
  } else if (world.pods.empty() && !requeue) {
    requeue = kCacheRetry;
  }
  if (options_.max_pods > 0 && world.pods.empty() && decision.step != profiling::Decision::Step::kCreatePod) {
    base::MutexLock lock(mutex_);
    with_pod_.erase(*id);
  }
  if (decision.step == profiling::Decision::Step::kCreatePod) {
    requeue = kCacheRetry;
    const absl::Status made = CreatePod(*id, world);
    if (IsTransient(made)) return base::Annotate(made, "create a profiler pod of " + key.ToString());
    if (!made.ok()) {
      ReleaseUnit(*id);
      decision = profiling::AfterFailedCreation(world, decision.memory, options_, base::Message(made));
      requeue = decision.requeue_after;
    }
  }
  if (decision.no_node) ReportNoNode(world);
  MEDLEY_RETURN_IF_ERROR(CarryOut(*id, world, decision));
  for (const profiling::Event& event : decision.events) {
    deps_.events.Record(world.job->object, event.warning ? EventRecorder::Type::kWarning : EventRecorder::Type::kNormal,
                        event.reason, event.message);
  }
  *memory = decision.memory;
  const bool knows_prices = !world.wanted || world.job || deps_.scheduler.catalog() != nullptr;
  if (knows_prices && deps_.profiles.Set(*id, decision.progress)) changed_(*id);
  if (world.wanted && !world.job) requeue = options_.price_poll;
  if (!decision.progress && world.pods.empty()) {
    base::MutexLock lock(mutex_);
    memories_.erase(*id);
    if (world.stored || !world.wanted) refused_.erase(*id);
  }
  return Result{requeue};
}

}  // namespace medley::ops

#include "operator/controllers/job_world.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/validate.h"
#include "operator/builders/pods.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/planning/pod_prices.h"
#include "operator/planning/pool_prices.h"
#include "operator/records/job_credentials.h"

namespace medley::ops {
namespace {

// The spec as it was when the job was admitted; null before, and where another client has changed what is stored.
kube::Json AdmittedSpec(const JobDeps& deps, const kube::Object& job) {
  const kube::Key key = job.key();
  const kube::ObjectPtr map = deps.stores.config_maps.Get({key.ns, SpecConfigMapName(key.name)});
  if (map == nullptr || !deps.options.record_keys.Check(RecordKind::kSpec, job.uid(), *map).ok()) return nullptr;
  kube::Json spec = kube::Json::parse(map->String("/data/spec.json"), nullptr, false);
  return spec.is_object() ? spec : kube::Json();
}

std::vector<JobCredentials> CredentialsFor(const JobDeps& deps, const kube::Object& job) {
  auto credentials = DeriveCredentials(deps.options.record_keys, job, deps.options.worker.tls, deps.clock.Now());
  if (credentials.ok()) return *std::move(credentials);
  // Without credentials the job gets no Secret, and its pass fails.
  base::log::Error("making the CA of a job failed", {{"error", base::ToString(credentials.status())}});
  return {};
}

std::map<std::string, kube::ObjectPtr> ReadObjects(const JobStores& stores, const kube::Key& job) {
  std::map<std::string, kube::ObjectPtr> objects;
  const auto read = [&](const kube::Resource& resource, const kube::Store& store, const std::string& name) {
    if (kube::ObjectPtr object = store.Get({job.ns, name})) objects[resource.kind] = std::move(object);
  };
  read(kube::resources::ConfigMaps(), stores.config_maps, SpecConfigMapName(job.name));
  read(kube::resources::Services(), stores.services, CoordinatorName(job.name));
  read(kube::resources::NetworkPolicies(), stores.network_policies, job.name);
  read(kube::resources::PodDisruptionBudgets(), stores.budgets, DisruptionBudgetName(job.name));
  return objects;
}

// The prices and units of one pool for one job. Counting units takes long: each zone is counted at most once.
class PoolReader {
 public:
  PoolReader(const JobDeps& deps, const TrainingJob& job, const ResourcePool& pool)
      : deps_(deps), job_(job), pool_(pool) {}

  // `view` has the pool.
  void Read(const PriceCatalog* catalog, const ZoneChoice& wanted, lifecycle::PoolView& view) {
    const std::vector<PoolOutage> outages = deps_.outages.Of(pool_.object);
    const base::WallTime now = deps_.clock.Now();
    const ZoneChoice choice = lifecycle::AvoidOutages(wanted, outages, pool_.object.generation(), now);
    const auto has_units = [this](const std::string& zone) { return UnitsIn(zone).units > 0; };
    auto price = PriceForJob(pool_, catalog, deps_.capacity.ZonesOf(pool_, UnitIn("")), choice, has_units);
    if (!price) {
      if (catalog != nullptr) view.why_unpriced = WhyUnpriced(pool_, *catalog);
      return;
    }
    view.usd_per_unit_hour = price->price.usd_per_unit_hour;
    view.paid_usd_per_unit_hour = price->paid;
    if (price->cheaper) view.cheaper_usd_per_unit_hour = price->cheaper->usd_per_unit_hour;
    if (price->only_held) {
      view.only_held = "no offering of the pool is available";
      const std::string since = pool_.object.String("/status/unavailableSince");
      if (!since.empty()) view.only_held += " since " + since;
    }
    view.zone = price->price.pin;
    view.units = UnitsIn(view.zone).units;
    view.bound = UnitsIn(view.zone).bound;
    view.held_by_others = UnitsIn(view.zone).held_by_others;
    for (const kube::Key& other : UnitsIn(view.zone).others) view.others.push_back(other.ToString());
    view.units_where_held = UnitsIn(choice.held ? choice.held->zone : view.zone).units;
    lifecycle::LimitByOutages(outages, now, view);
  }

 private:
  // What the job's own pod, with its template, asks of a node.
  PodDemand UnitIn(const std::string& zone) const {
    const MemberSlot slot{"unit", Role::kTrainer, pool_.name, 0, 0, zone};
    return deps_.capacity.Demand(MemberPod(job_, slot, pool_, deps_.options.worker, "", 0));
  }
  const JobUnits& UnitsIn(const std::string& zone) {
    const auto counted = units_.find(zone);
    if (counted != units_.end()) return counted->second;
    return units_[zone] = deps_.capacity.UnitsFor(pool_, UnitIn(zone), job_.key());
  }

  const JobDeps& deps_;
  const TrainingJob& job_;
  const ResourcePool& pool_;
  std::map<std::string, JobUnits> units_;  // by zone
};

// The latest end of a container; nullopt: the pod has not ended. Where no container says when it ended, the pod costs
// nothing from now on: its creation.
std::optional<base::WallTime> EndOf(const kube::Object& pod) {
  const std::string phase = pod.String("/status/phase");
  if (phase != "Succeeded" && phase != "Failed") return std::nullopt;
  std::optional<base::WallTime> end;
  for (const kube::Json& container : pod.At("/status/containerStatuses")) {
    const auto time = base::ParseTime(kube::Object(container).String("/state/terminated/finishedAt"));
    if (time.ok() && (!end || *time > *end)) end = *time;
  }
  return end ? end : base::ParseTime(pod.String("/metadata/creationTimestamp")).value_or(base::WallTime());
}

// When the pod got its node; nullopt: it has none. A node that does not say when counts from the pod's creation.
std::optional<base::WallTime> NodeSince(const kube::Object& pod, base::WallTime created) {
  if (pod.String("/spec/nodeName").empty()) return std::nullopt;
  for (const kube::Json& item : pod.At("/status/conditions")) {
    const kube::Object condition(item);
    if (condition.String("/type") != "PodScheduled" || condition.String("/status") != "True") continue;
    return base::ParseTime(condition.String("/lastTransitionTime")).value_or(created);
  }
  return created;
}

// Without those of another user who has written the job as their owner. Members of a version that did not sign count.
std::vector<kube::ObjectPtr> PodsOfJob(std::vector<kube::ObjectPtr> pods, const std::string& job,
                                       const std::optional<PlanRecord>& record) {
  std::set<std::string> planned;
  if (record) {
    planned = {record->CoordinatorPodName(job), record->successor_pod};
    for (const MemberSlot& slot : record->slots) planned.insert(slot.member);
    for (const MemberSlot& slot : record->FallbackSlots()) planned.insert(slot.member);
  }
  std::erase_if(pods, [&](const kube::ObjectPtr& pod) {
    return !pod->annotation(kUnsignedAnnotation).empty() && !planned.contains(pod->key().name);
  });
  return pods;
}

// What the job pays for, of `pods`.
void ReadPaidPods(const JobDeps& deps, const std::vector<kube::ObjectPtr>& pods, lifecycle::World& world) {
  const auto catalog = deps.scheduler.catalog();
  world.prices_are_known = catalog != nullptr;
  if (pods.empty()) return;
  std::vector<ResourcePool> pools;
  for (const kube::ObjectPtr& object : deps.stores.pools.List()) {
    if (auto pool = ResourcePool::FromObject(*object); pool.ok()) pools.push_back(*std::move(pool));
  }
  PodPrices prices(pools, catalog.get());
  for (const kube::ObjectPtr& pod : pods) {
    const auto created = base::ParseTime(pod->String("/metadata/creationTimestamp"));
    if (!created.ok()) continue;
    lifecycle::PaidPod& paid = world.paid_pods[pod->uid()];
    paid.created = *created;
    paid.ended = EndOf(*pod);
    paid.node_at = NodeSince(*pod, *created);
    const std::string node = pod->String("/spec/nodeName");
    const PodPrices::Price price = prices.Of(*pod, deps.capacity.LabelsOf(node));
    paid.pool = price.pool;
    if (price.part > 0) paid.part = price.part;
    if (IsUnschedulable(*pod)) continue;
    paid.held = price.part > 0;
    paid.usd_per_hour = price.usd_per_hour;
  }
}

}  // namespace

lifecycle::JobInput ReadJobInput(const JobDeps& deps, kube::ObjectPtr object) {
  const kube::Json admitted = AdmittedSpec(deps, *object);
  return lifecycle::ReadJob(std::move(object), admitted);
}

kube::ObjectPtr ReadCurrent(const JobDeps& deps, bool first, const kube::Resource& resource, const kube::Key& key,
                            kube::ObjectPtr cached) {
  if (!first || deps.leader_term() == 0) return cached;
  auto now = deps.client.Get(resource, key);
  if (kube::IsNotFound(now.status())) return nullptr;
  if (now.ok()) return std::make_shared<const kube::Object>(*std::move(now));
  base::log::Debug("reading the object failed; the cached one is used",
                   {{"object", key.ToString()}, {"error", base::ToString(now.status())}});
  return cached;
}

lifecycle::World ReadWorld(const JobDeps& deps, const kube::ObjectPtr& object, const lifecycle::Memory& memory,
                           bool first) {
  lifecycle::World world;
  world.now = deps.clock.Now();
  world.steady = deps.clock.Steady();
  world.leader_term = deps.leader_term();
  // Before the pods are listed: what is satisfied now, the list shows.
  world.pods_are_current = deps.expectations.Satisfied(object->key());
  std::vector<kube::ObjectPtr> pods = deps.stores.pods.ByIndex("owner", object->uid());
  // Whoever knows the UID can write it elsewhere, or with another name.
  std::erase_if(pods, [&](const kube::ObjectPtr& pod) {
    const auto owner = pod->controller();
    return pod->key().ns != object->key().ns || !owner || owner->name != object->key().name;
  });
  const auto copies = std::stable_partition(pods.begin(), pods.end(), [](const kube::ObjectPtr& pod) {
    return pod->annotation(kUnsignedAnnotation) != kCopiedSignature;
  });
  world.copies.assign(copies, pods.end());
  pods.erase(copies, pods.end());
  ReadPaidPods(deps, PodsOfJob(pods, object->key().name, memory.stored_plan.record), world);
  for (const kube::ObjectPtr& pod : pods) {
    if (pod->label(kRoleLabel) == ToString(Role::kProfiler)) continue;
    world.pods[pod->key().name] = pod;
    const std::string node = pod->String("/spec/nodeName");
    if (node.empty()) continue;
    if (auto notice = deps.capacity.NoticeOf(node)) world.node_notices[node] = *std::move(notice);
    if (deps.capacity.IsDown(node)) world.nodes_not_ready.insert(node);
  }
  world.quota_changes = deps.capacity.QuotaChanges(object->key().ns);
  world.objects = ReadObjects(deps.stores, object->key());
  if (memory.stored_plan.record) {
    world.stored_plan = deps.stores.config_maps.Get({object->key().ns, PlanConfigMapName(object->key().name)});
  }
  if (const auto link = deps.links.Find(object->key())) {
    world.connection = link->connection();
    world.observed = link->latest();
  }
  if (first || !memory.status.written) {
    const kube::ObjectPtr current = ReadCurrent(deps, first, TrainingJobs(), object->key(), object);
    const bool same = current != nullptr && current->uid() == object->uid();
    world.stored_status = same ? current->At("/status") : object->At("/status");
  }
  if (first || memory.objects.credentials.empty()) world.credentials = CredentialsFor(deps, *object);
  return world;
}

lifecycle::PoolsView ReadPoolsView(const JobDeps& deps, const TrainingJob& job, const lifecycle::ReadPools& query) {
  lifecycle::PoolsView view;
  const auto catalog = deps.scheduler.catalog();
  if (catalog != nullptr) view.catalog_revision = catalog->revision;
  for (const kube::ObjectPtr& object : deps.stores.pools.List()) {
    auto pool = ResourcePool::FromObject(*object);
    if (!pool.ok() || !ValidateResourcePool(*object).empty() || object->deleting()) continue;
    lifecycle::PoolView one;
    one.pool = *std::move(pool);
    const ResourcePool& read = one.pool;
    const bool asked =
        query.names.empty() || std::find(query.names.begin(), query.names.end(), read.name) != query.names.end();
    if (query.with_prices_and_units && asked && read.Allows(job.key().ns)) {
      const auto choice = query.zones.find(read.name);
      PoolReader(deps, job, read).Read(catalog.get(), choice == query.zones.end() ? ZoneChoice() : choice->second, one);
    }
    view.pools.push_back(std::move(one));
  }
  return view;
}

}  // namespace medley::ops

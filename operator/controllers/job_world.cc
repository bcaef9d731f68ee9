#include "operator/controllers/job_world.h"

#include <algorithm>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/api/validate.h"
#include "operator/builders/pods.h"

namespace medley::ops {
namespace {

// The spec as it was when the job was admitted; null before.
kube::Json AdmittedSpec(const JobDeps& deps, const kube::Key& key) {
  const kube::ObjectPtr map = deps.stores.config_maps.Get({key.ns, SpecConfigMapName(key.name)});
  if (map == nullptr) return nullptr;
  kube::Json spec = kube::Json::parse(map->String("/data/spec.json"), nullptr, false);
  return spec.is_object() ? spec : kube::Json();
}

std::string FreshToken(const JobDeps& deps) {
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:016x}", deps.entropy());
  return token;
}

// Capacity is counted for a pod of this job, with its template.
JobUnits UnitsFor(const JobDeps& deps, const TrainingJob& job, const ResourcePool& pool) {
  const MemberSlot slot{"unit", Role::kTrainer, pool.name, 0, 0};
  const kube::Object pod = MemberPod(job, slot, pool, deps.options.worker, "", 0);
  return deps.capacity.UnitsFor(pool, deps.capacity.Demand(pod), job.key());
}

}  // namespace

lifecycle::JobInput ReadJobInput(const JobDeps& deps, kube::ObjectPtr object) {
  const kube::Json admitted = AdmittedSpec(deps, object->key());
  return lifecycle::ReadJob(std::move(object), admitted);
}

kube::ObjectPtr ReadCurrent(const JobDeps& deps, bool first, const kube::Resource& resource, const kube::Key& key,
                            kube::ObjectPtr cached) {
  if (!first || deps.leader_term() == 0) return cached;
  auto now = deps.client.Get(resource, key);
  if (kube::IsNotFound(now.status())) return nullptr;
  if (now.ok()) return std::make_shared<const kube::Object>(*std::move(now));
  log::Debug("reading the object failed; the cached one is used",
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
  for (const kube::ObjectPtr& pod : deps.stores.pods.ByIndex("owner", object->uid())) {
    world.pods[pod->key().name] = pod;
    const std::string node = pod->String("/spec/nodeName");
    if (node.empty()) continue;
    if (auto notice = deps.capacity.NoticeOf(node)) world.node_notices[node] = *std::move(notice);
    if (deps.capacity.IsDown(node)) world.nodes_not_ready.insert(node);
  }
  if (const auto link = deps.links.Find(object->key())) {
    world.connection = lifecycle::Connection{link->address(), link->token()};
    world.observed = link->latest();
  }
  if (first || !memory.status.written) {
    const kube::ObjectPtr current = ReadCurrent(deps, first, TrainingJobs(), object->key(), object);
    const bool same = current != nullptr && current->uid() == object->uid();
    world.stored_status = same ? current->At("/status") : object->At("/status");
  }
  if (first || memory.objects.token.empty()) world.fresh_token = FreshToken(deps);
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
    if (const auto price = PriceOf(*pool, catalog.get())) one.usd_per_unit_hour = price->usd_per_unit_hour;
    const bool asked =
        query.names.empty() || std::find(query.names.begin(), query.names.end(), pool->name) != query.names.end();
    if (query.count_units && asked && one.usd_per_unit_hour && pool->Allows(job.key().ns)) {
      JobUnits units = UnitsFor(deps, job, *pool);
      one.units = units.units;
      one.bound = std::move(units.bound);
    }
    one.pool = *std::move(pool);
    view.pools.push_back(std::move(one));
  }
  return view;
}

}  // namespace medley::ops

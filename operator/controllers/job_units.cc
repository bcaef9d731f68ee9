#include "operator/controllers/job_units.h"

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_world.h"
#include "operator/records/plan_record.h"

namespace medley::ops {
namespace {

// The value of the PriorityClass, as the API server resolves it for pods: without a name, that of the global default.
int64_t PriorityOf(const JobDeps& deps, const std::string& name) {
  const kube::Store& classes = deps.stores.priority_classes;
  const auto value = [](const kube::ObjectPtr& found) {
    const kube::Json& number = found == nullptr ? kube::Json() : found->At("/value");
    return number.is_number_integer() ? number.get<int64_t>() : 0;
  };
  if (!name.empty()) return value(classes.Get({"", name}));
  for (const kube::ObjectPtr& each : classes.List()) {
    if (each->At("/globalDefault") == kube::Json(true)) return value(each);
  }
  return 0;
}

std::shared_ptr<const ResourcePool> PoolOf(const JobDeps& deps, const std::string& name) {
  const kube::ObjectPtr object = deps.stores.pools.Get({"", name});
  if (object == nullptr) return nullptr;
  auto pool = ResourcePool::FromObject(*object);
  return pool.ok() ? std::make_shared<const ResourcePool>(*std::move(pool)) : nullptr;
}

void RestoreJob(const JobDeps& deps, const kube::ObjectPtr& object) {
  const lifecycle::JobInput input = ReadJobInput(deps, object);
  if (!input.job) return;
  const kube::ObjectPtr map = deps.stores.config_maps.Get({object->key().ns, PlanConfigMapName(object->key().name)});
  const auto owner = map == nullptr ? std::nullopt : map->controller();
  if (owner && owner->uid == object->uid()) {
    const auto record = ReadPlanRecord(*map);
    if (record.ok()) {
      deps.capacity.Restore({object->key(), object->uid()},
                            UnitsOfSlots(deps, *input.job, record->slots, record->FallbackSlots()));
      return;
    }
  }
  const Conditions conditions = JobStatus::FromJson(object->At("/status")).conditions;
  const Condition* planned = conditions.Find(kPlannedCondition);
  const bool waits = planned != nullptr && planned->status == ConditionStatus::kFalse;
  if (waits && !input.job->run_policy.suspend) deps.line.Join(PlaceInLine(deps, *input.job, *object));
}

}  // namespace

std::vector<PlannedUnit> UnitsOfSlots(const JobDeps& deps, const TrainingJob& job, const std::vector<MemberSlot>& slots,
                                      const std::vector<MemberSlot>& until_switch) {
  std::map<std::string, std::shared_ptr<const ResourcePool>> pools;  // null: it does not exist
  // By pool, zone and role, whose templates may differ.
  std::map<std::tuple<std::string, std::string, Role>, std::shared_ptr<const PodDemand>> demands;
  std::set<std::string> members;
  std::vector<PlannedUnit> units;
  const auto add = [&](const MemberSlot& slot, bool leaves) {
    if (!members.insert(slot.member).second) return;
    auto pool = pools.find(slot.pool);
    if (pool == pools.end()) pool = pools.emplace(slot.pool, PoolOf(deps, slot.pool)).first;
    if (pool->second == nullptr) return;
    auto& demand = demands[{slot.pool, slot.zone, slot.role}];
    if (demand == nullptr) {
      demand = std::make_shared<const PodDemand>(
          deps.capacity.Demand(MemberPod(job, slot, *pool->second, deps.options.worker, "", 0)));
    }
    units.push_back({{job.key().ns, slot.member}, pool->second, demand, leaves, Holder::kMember});
  };
  for (const MemberSlot& slot : slots) add(slot, false);
  for (const MemberSlot& slot : until_switch) add(slot, true);
  if (slots.empty()) return units;
  // Last, so that it takes the room that the members leave.
  const kube::Object coordinator = CoordinatorPod(job, deps.options.worker);
  units.push_back({coordinator.key(), nullptr, std::make_shared<const PodDemand>(deps.capacity.Demand(coordinator)),
                   false, Holder::kCoordinator});
  return units;
}

PoolOutages::Placed PlacedPods(const JobDeps& deps, const std::string& pool) {
  PoolOutages::Placed placed;
  for (const kube::ObjectPtr& pod : deps.stores.pods.List()) {
    if (pod->label(kPoolLabel) == pool && !pod->String("/spec/nodeName").empty())
      placed[pod->uid()] = PinnedZone(DemandOf(*pod));
  }
  return placed;
}

WaitingLine::Job PlaceInLine(const JobDeps& deps, const TrainingJob& job, const kube::Object& object) {
  return {object.key(), PriorityOf(deps, job.run_policy.priority_class), object.String("/metadata/creationTimestamp")};
}

void ReportFreed(const JobDeps& deps) {
  if (deps.capacity.TakeFreed()) deps.line.UnitsFreed();
}

void RestoreUnits(const JobDeps& deps) {
  for (const kube::ObjectPtr& object : deps.stores.jobs.List()) {
    if (!ManagedByThisOperator(*object) || object->deleting()) continue;
    if (JobStatus::FromJson(object->At("/status")).finished()) continue;
    RestoreJob(deps, object);
  }
}

}  // namespace medley::ops

#include "operator/controllers/job_units.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/pod.h"
#include "operator/api/job_status.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/pods.h"
#include "operator/controllers/job_world.h"
#include "operator/lifecycle/stored_plan.h"
#include "operator/records/notices.h"
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

// From the pod's creation to its node; 0: the pod does not say.
double SecondsToNode(const kube::Object& pod) {
  const auto created = base::ParseTime(pod.String("/metadata/creationTimestamp"));
  for (const kube::Json& item : pod.At("/status/conditions")) {
    const kube::Object condition(item);
    if (condition.String("/type") != "PodScheduled" || condition.String("/status") != "True") continue;
    const auto scheduled = base::ParseTime(condition.String("/lastTransitionTime"));
    if (created.ok() && scheduled.ok()) return std::max(0.0, base::ToSeconds(*scheduled - *created));
  }
  return 0;
}

// The pod says that it ended because its node did.
bool EndedWithItsNode(const kube::Object& pod) {
  const std::string sign = PodNoticeOf(pod).value_or(Notice()).sign;
  return sign.ends_with("DeletionByTaintManager") || sign.ends_with("DeletionByPodGC") ||
         sign.ends_with("TerminationByKubelet");
}

// The node leaves or has left under a pod that has not ended by itself.
bool WasTaken(const JobDeps& deps, const kube::Object& pod, const std::string& node) {
  if (EndedWithItsNode(pod)) return true;
  if (const auto notice = deps.capacity.NoticeOf(node)) return notice->certain;
  return deps.capacity.LabelsOf(node).empty();
}

constexpr int kPage = 500;  // objects
constexpr base::nanoseconds kRestorePatience = base::seconds(60);
constexpr base::nanoseconds kRestoreRetry = base::seconds(1);

// Calls `each` with every object, as the API server has it now. Objects of earlier pages are not kept.
absl::Status ForEach(kube::Client& client, const kube::Resource& resource, kube::ListOptions options,
                     const std::function<void(const kube::Object&)>& each) {
  options.limit = kPage;
  do {
    MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectList page, client.List(resource, options));
    for (const kube::Object& object : page.items) each(object);
    options.continue_token = page.continue_token;
  } while (!options.continue_token.empty());
  return absl::OkStatus();
}

struct StoredPlan {
  std::string owner_uid;
  std::vector<MemberSlot> slots;
  std::vector<MemberSlot> fallback;
  std::string coordinator_pod;
};
using StoredPlans = std::map<kube::Key, StoredPlan>;  // by job

absl::StatusOr<StoredPlans> ReadStoredPlans(const JobDeps& deps, const std::string& ns, std::stop_token stop) {
  StoredPlans plans;
  const auto add = [&](const kube::Object& map) {
    const auto owner = map.controller();
    if (!owner || map.key().name != PlanConfigMapName(owner->name)) return;
    // The first pass over the job reports a plan that is not believed.
    if (!deps.options.record_keys.Check(RecordKind::kPlan, owner->uid, map).ok()) return;
    const auto record = ReadPlanRecord(map);
    if (!record.ok() || !lifecycle::CheckPlanRecord(*record, owner->name, owner->uid).ok()) return;
    plans[{map.key().ns, owner->name}] = {owner->uid, record->slots, record->FallbackSlots(), record->coordinator_pod};
  };
  const absl::Status read = ForEach(deps.client, kube::resources::ConfigMaps(),
                                    {.ns = ns, .label_selector = kOwnObjectsSelector, .stop = std::move(stop)}, add);
  if (!read.ok()) return base::Annotate(read, "list the ConfigMaps of jobs");
  return plans;
}

void RestoreJob(const JobDeps& deps, const kube::ObjectPtr& object, const StoredPlans& plans) {
  if (!ManagedByThisOperator(*object) || object->deleting()) return;
  if (JobStatus::FromJson(object->At("/status")).finished()) return;
  const lifecycle::JobInput input = ReadJobInput(deps, object);
  if (!input.job) return;
  const auto plan = plans.find(object->key());
  if (plan != plans.end() && plan->second.owner_uid == object->uid()) {
    deps.capacity.Restore(
        {object->key(), object->uid()},
        UnitsOfSlots(deps, *input.job, plan->second.slots, plan->second.fallback, plan->second.coordinator_pod));
    return;
  }
  const Conditions conditions = JobStatus::FromJson(object->At("/status")).conditions;
  const Condition* planned = conditions.Find(kPlannedCondition);
  const bool waits = planned != nullptr && planned->status == ConditionStatus::kFalse;
  if (waits && !input.job->run_policy.suspend) deps.line.Join(PlaceInLine(deps, *input.job, *object));
}

absl::Status RestoreUnitsOnce(const JobDeps& deps, const std::string& ns, const std::stop_token& stop) {
  MEDLEY_ASSIGN_OR_RETURN(const StoredPlans plans, ReadStoredPlans(deps, ns, stop));
  const absl::Status read = ForEach(
      deps.client, TrainingJobs(), {.ns = ns, .stop = stop},
      [&](const kube::Object& object) { RestoreJob(deps, std::make_shared<const kube::Object>(object), plans); });
  return base::Annotate(read, "list TrainingJobs");
}

}  // namespace

std::vector<PlannedUnit> UnitsOfSlots(const JobDeps& deps, const TrainingJob& job, const std::vector<MemberSlot>& slots,
                                      const std::vector<MemberSlot>& until_switch, const std::string& coordinator_pod) {
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
  const kube::Object coordinator = CoordinatorPod(job, deps.options.worker, coordinator_pod);
  units.push_back({coordinator.key(), nullptr, std::make_shared<const PodDemand>(deps.capacity.Demand(coordinator)),
                   false, Holder::kCoordinator});
  return units;
}

bool IsOfKnownJob(const JobDeps& deps, const kube::Object& pod) {
  const auto owner = pod.controller();
  if (!owner || owner->kind != TrainingJobs().kind) return false;
  if (!deps.ns.empty() && deps.ns != pod.key().ns) return true;
  const bool is_signed = pod.annotation(kUnsignedAnnotation).empty();
  return is_signed && deps.stores.jobs.UidOf({pod.key().ns, owner->name}) == owner->uid;
}

PoolOutages::Placed PlacedPods(const JobDeps& deps, const std::string& pool) {
  PoolOutages::Placed placed;
  for (const kube::ObjectPtr& pod : deps.stores.pods.List()) {
    if (pod->label(kPoolLabel) == pool && !pod->String("/spec/nodeName").empty() && IsOfKnownJob(deps, *pod))
      placed[pod->uid()] = PinnedZone(DemandOf(*pod));
  }
  return placed;
}

std::vector<UnitLosses::Unit> UnitsWithNodes(const JobDeps& deps, const std::string& pool) {
  std::vector<UnitLosses::Unit> units;
  for (const kube::ObjectPtr& pod : deps.stores.pods.List()) {
    const std::string node = pod->String("/spec/nodeName");
    if (pod->label(kPoolLabel) != pool || node.empty() || !IsOfKnownJob(deps, *pod)) continue;
    if (kube::HasEnded(*pod) && !EndedWithItsNode(*pod)) continue;  // a finished job may keep its pods
    UnitLosses::Unit& unit = units.emplace_back(pod->uid());
    unit.start_seconds = SecondsToNode(*pod);
    unit.lost = WasTaken(deps, *pod, node);
  }
  return units;
}

WaitingLine::Job PlaceInLine(const JobDeps& deps, const TrainingJob& job, const kube::Object& object) {
  return {object.key(), PriorityOf(deps, job.run_policy.priority_class), object.String("/metadata/creationTimestamp")};
}

void ReportFreed(const JobDeps& deps) {
  if (deps.capacity.TakeFreed()) deps.line.UnitsFreed();
}

absl::Status RestoreUnits(const JobDeps& deps, const std::string& ns, std::stop_token stop) {
  const base::SteadyTime until = deps.clock.Steady() + kRestorePatience;
  while (true) {
    const absl::Status restored = RestoreUnitsOnce(deps, ns, stop);
    if (restored.ok() || stop.stop_requested() || deps.clock.Steady() >= until) return restored;
    base::log::Warn("the units of stored plans cannot be read; trying again", {{"error", base::ToString(restored)}});
    if (!deps.clock.SleepUntil(deps.clock.Steady() + kRestoreRetry, stop))
      return base::Cancelled("read the units of stored plans: stopped");
  }
}

}  // namespace medley::ops

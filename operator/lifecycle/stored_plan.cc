#include "operator/lifecycle/stored_plan.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/status.h"
#include "common/model/executable.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/slots.h"
#include "operator/lifecycle/keeping.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/planning.h"
#include "operator/lifecycle/pod_state.h"
#include "operator/lifecycle/succession.h"

namespace medley::ops::lifecycle {
namespace {

constexpr int64_t kMostTerms = 1'000'000'000;                    // of coordinators, and of generations
constexpr size_t kLongestName = 253;                             // of a pod
constexpr base::nanoseconds kCacheShowsPlan = base::seconds(5);  // at the latest

// What a slot says beside the name and the zone of its pod.
using SlotShape = std::tuple<Role, std::string, int, int, std::string>;

std::multiset<SlotShape> ShapesOf(const std::vector<MemberSlot>& slots) {
  std::multiset<SlotShape> shapes;
  for (const MemberSlot& slot : slots) shapes.emplace(slot.role, slot.pool, slot.stage, slot.index, slot.device);
  return shapes;
}

bool IsNameOf(const std::string& job, const std::string& pod) {
  return pod.size() > job.size() + 1 && pod.size() <= kLongestName && pod.starts_with(job + "-");
}

absl::Status CheckSlots(const PlanRecord& record, const std::string& job) {
  std::set<std::string> names;
  for (const MemberSlot& slot : record.slots) {
    if (!IsNameOf(job, slot.member)) return base::InvalidArgument("'{}' is no pod of the job", slot.member);
    if (!names.insert(slot.member).second) return base::InvalidArgument("pod {} has two places", slot.member);
  }
  if (ShapesOf(record.slots) != ShapesOf(AssignSlots(job, record.plan))) {
    return base::InvalidArgument("its {} pods are not those of the plan", record.slots.size());
  }
  return absl::OkStatus();
}

bool IsOwn(const Pass& pass, const kube::Object& map) {
  const auto owner = map.controller();
  return owner && owner->uid == pass.object.uid();
}

// Errors: why the record is not believed.
absl::StatusOr<PlanRecord> BelievedRecord(const Pass& pass, const kube::Object& map) {
  const std::string uid = pass.object.uid();
  MEDLEY_RETURN_IF_ERROR(pass.options.record_keys.Check(RecordKind::kPlan, uid, map));
  MEDLEY_ASSIGN_OR_RETURN(PlanRecord record, ReadPlanRecord(map));
  const std::string job = pass.object.key().name;
  MEDLEY_RETURN_IF_ERROR(base::Annotate(CheckPlanRecord(record, job, uid), "ConfigMap " + map.key().name));
  if (record.fallback != nullptr && !CheckPlanRecord(*record.fallback, job, uid).ok()) record.fallback.reset();
  return record;
}

int64_t WrittenTerm(const Pass& pass) {
  return JobStatus::FromJson(pass.memory.status.written->Unpack()).coordinator_term;
}

// Until then the stored plan alone has it.
absl::Status KeepNewestTerm(Pass& pass) {
  const int64_t newest = pass.report.coordinator_term;
  if (WrittenTerm(pass) >= newest) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(WriteStatus(pass));
  if (WrittenTerm(pass) >= newest) return absl::OkStatus();
  return base::Unavailable(
      "delete the plan of {}: its status, which keeps the coordinator's number, is not written yet",
      pass.object.key().ToString());
}

}  // namespace

absl::Status CheckPlanRecord(const PlanRecord& record, const std::string& job, const std::string& uid) {
  if (record.plan.job_uid != uid) return base::InvalidArgument("the plan is of another job");
  if (record.plan.generation < 1 || record.plan.generation > kMostTerms) {
    return base::InvalidArgument("generation {} is impossible", record.plan.generation);
  }
  for (const int64_t term : {record.coordinator_term, record.successor_term}) {
    if (term < 0 || term > kMostTerms) return base::InvalidArgument("the coordinator's number {} is impossible", term);
  }
  for (const std::string& pod : {record.coordinator_pod, record.successor_pod}) {
    if (!pod.empty() && !IsNameOf(job, pod)) return base::InvalidArgument("'{}' is no pod of the job", pod);
  }
  MEDLEY_RETURN_IF_ERROR(model::Validate(record.plan, static_cast<int>(record.layer_names.size())));
  MEDLEY_RETURN_IF_ERROR(model::CheckExecutable(record.plan));
  return CheckSlots(record, job);
}

void ReportRefusedRecord(Pass& pass, const std::string& why) {
  const std::string sentence = "The stored plan is not believed and is made anew: " + why + ". Leave ConfigMap " +
                               PlanConfigMapName(pass.object.key().name) + " to the operator.";
  pass.Warning(Reason::kRecordRefused, sentence);
  SetCondition(pass, kRecordsGenuineCondition, ConditionStatus::kFalse, Reason::kRecordRefused, sentence);
}

void ReportRenewedRecord(Pass& pass) {
  const Condition* before = pass.report.conditions.Find(kRecordsGenuineCondition);
  if (before == nullptr || before->status == ConditionStatus::kTrue) return;
  SetCondition(pass, kRecordsGenuineCondition, ConditionStatus::kTrue, Reason::kRecordRenewed,
               "A stored plan that was not the operator's was made anew.");
}

absl::Status ReadStoredPlan(Pass& pass) {
  StoredPlanState& state = pass.Own(&Memory::stored_plan);
  if (state.record) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectPtr map, pass.Ask(ReadPlan{}));
  if (map == nullptr) return absl::OkStatus();
  auto record = BelievedRecord(pass, *map);
  if (!record.ok() && !IsOwn(pass, *map)) return absl::OkStatus();  // of an earlier job of this name
  const bool known = state.version == map->resource_version();
  state.version = map->resource_version();
  if (!record.ok()) {
    if (!known) ReportRefusedRecord(pass, base::Message(record.status()));
    return absl::OkStatus();
  }
  state.record = *std::move(record);
  state.kept = {};
  state.kept.next = pass.world.steady + kCacheShowsPlan;  // this pass was begun without it
  state.must_sign = !pass.options.record_keys.IsCurrent(RecordKind::kPlan, pass.object.uid(), *map);
  // The operator that stored it may have ended before it wrote the status, which outlives the plan.
  int64_t& newest = pass.report.coordinator_term;
  newest = std::max({newest, state.record->coordinator_term, state.record->successor_term});
  return absl::OkStatus();
}

absl::Status KeepStoredPlan(Pass& pass, const TrainingJob& job) {
  StoredPlanState& state = pass.Own(&Memory::stored_plan);
  const kube::ObjectPtr& map = pass.world.stored_plan;
  if (!state.record) return absl::OkStatus();
  if (std::exchange(state.must_sign, false)) return StorePlan(pass, job, PlanRecord(*state.record));
  if (map != nullptr && map->resource_version() == state.version) return absl::OkStatus();
  const bool own = map != nullptr && IsOwn(pass, *map);
  const absl::Status genuine =
      own ? pass.options.record_keys.Check(RecordKind::kPlan, pass.object.uid(), *map) : absl::OkStatus();
  // The cache is behind, or another operator has written it: StorePlan finds out.
  if (own && genuine.ok()) return absl::OkStatus();
  if (!IsDue(pass, state.kept)) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(StorePlan(pass, job, PlanRecord(*state.record)));
  CountRestore(pass, state.kept, kube::resources::ConfigMaps(), PlanConfigMapName(job.name()),
               map == nullptr ? "deleted" : "changed");
  return absl::OkStatus();
}

absl::Status StorePlan(Pass& pass, const TrainingJob& job, const PlanRecord& record) {
  StoredPlanState& state = pass.Own(&Memory::stored_plan);
  kube::Object map = PlanConfigMap(job, record);
  map.SetAnnotation(kLeaderTermAnnotation, std::to_string(pass.world.leader_term));
  pass.options.record_keys.Sign(RecordKind::kPlan, pass.object.uid(), map);
  MEDLEY_ASSIGN_OR_RETURN(const SavePlan::Outcome outcome, pass.Ask(SavePlan{std::move(map), state.version}));
  if (!outcome.version.empty()) state.version = outcome.version;
  if (outcome.overtaken) {
    state.record.reset();
    if (outcome.plan_of_other != nullptr) state.record = *outcome.plan_of_other;
  }
  if (!outcome.status.ok()) {
    ForgetUnusedTerm(pass);
    return outcome.status;
  }
  state.record = record;
  state.kept.next = std::max(state.kept.next, pass.world.steady + kCacheShowsPlan);
  if (!outcome.refused.empty()) ReportRefusedRecord(pass, outcome.refused);
  ReportRenewedRecord(pass);
  return absl::OkStatus();
}

absl::Status StoreCoordinator(Pass& pass, const TrainingJob& job, const std::string& uid, int restarts) {
  PlanRecord record = *pass.memory.stored_plan.record;
  record.coordinator_uid = uid;
  record.coordinator_restarts = restarts;
  return StorePlan(pass, job, record);
}

absl::Status DeletePlan(Pass& pass) {
  if (!pass.memory.stored_plan.record) return absl::OkStatus();
  MEDLEY_RETURN_IF_ERROR(KeepNewestTerm(pass));
  const kube::Key key{pass.object.key().ns, PlanConfigMapName(pass.object.key().name)};
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status deleted,
                          pass.Ask(DeleteObject{kube::resources::ConfigMaps(), key, std::nullopt, ""}));
  if (!deleted.ok() && !kube::IsNotFound(deleted)) return deleted;
  StoredPlanState& state = pass.Own(&Memory::stored_plan);
  state.record.reset();
  state.version.clear();
  return KeepUnitsReserved(pass);
}

std::vector<MemberSlot> MembersWithoutPlan(const Pass& pass) {
  std::vector<MemberSlot> slots;
  if (pass.memory.stored_plan.record) return slots;
  for (const auto& [name, pod] : pass.world.pods) {
    if (!IsMember(*pod) || pass.IsTerminating(*pod) || WorkerHasEnded(*pod) || IsUnschedulable(*pod)) continue;
    const Role role = pod->label(kRoleLabel) == ToString(Role::kServer) ? Role::kServer : Role::kTrainer;
    slots.push_back({name, role, pod->label(kPoolLabel), -1, -1});
  }
  return slots;
}

}  // namespace medley::ops::lifecycle

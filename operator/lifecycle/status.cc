#include "operator/lifecycle/status.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "common/base/status.h"
#include "common/model/placement.h"
#include "kube/errors.h"
#include "operator/lifecycle/pass.h"
#include "operator/lifecycle/pod_state.h"

namespace medley::ops::lifecycle {
namespace {

constexpr base::nanoseconds kConflictRetry = base::milliseconds(50);
// Money alone grows in every pass, and is no reason to write until the pods have ended.
constexpr base::nanoseconds kMoneyInterval = std::chrono::minutes(30);
constexpr base::nanoseconds kFirstMoney = base::seconds(60);
constexpr double kMoneyGrowth = 1.5;

bool OnlyMoneyChanged(kube::Json now, kube::Json before) {
  if (!now.is_object() || !before.is_object()) return false;
  for (const char* money : {"cost", "goodput"}) {
    now.erase(money);
    before.erase(money);
  }
  return now == before;
}

// A merge patch removes a field that is null, at any depth.
void RemoveAbsent(const kube::Json& before, kube::Json& patch) {
  if (!before.is_object() || !patch.is_object()) return;
  for (const auto& [field, value] : before.items()) {
    if (!patch.contains(field)) {
      patch[field] = nullptr;
    } else {
      RemoveAbsent(value, patch[field]);
    }
  }
}

// The fields that a reader waits for; the others may be as old as the status interval.
kube::Json Urgent(const kube::Json& status) {
  kube::Json urgent = kube::Json::object();
  for (const char* field : {"conditions", "plan", "lastRescale", "restarts", "countedRestarts", "coordinatorTerm",
                            "startTime", "completionTime", "replicas", "observedGeneration"}) {
    if (status.is_object() && status.contains(field)) urgent[field] = status[field];
  }
  return urgent;
}

// The conditions that other controllers have set, as the cache shows them.
kube::Json ForeignConditions(const Pass& pass) {
  kube::Json foreign = kube::Json::array();
  for (const kube::Json& condition : pass.object.At("/status/conditions")) {
    if (!condition.is_object() || !condition.contains("type") || !condition["type"].is_string()) continue;
    const auto type = condition["type"].get<std::string>();
    if (std::find(kJobConditions.begin(), kJobConditions.end(), type) == kJobConditions.end()) {
      foreign.push_back(condition);
    }
  }
  return foreign;
}

// The operations that devices of the pool run: "0-2,5-5", at most kMaxLayers characters.
std::string PlacedLayers(const model::ExecutionPlan& plan, const std::string& pool) {
  constexpr size_t kMaxLayers = 200;
  std::set<int> operations;
  const std::vector<std::vector<model::OperationRange>> runs = model::OperationsByDevice(plan);
  for (size_t d = 0; d < runs.size(); ++d) {
    if (plan.devices[d].pool != pool) continue;
    for (const model::OperationRange& range : runs[d]) {
      for (int op = range.first; op < range.end; ++op) operations.insert(op);
    }
  }
  std::string text;
  for (auto at = operations.begin(); at != operations.end();) {
    const int first = *at;
    int last = first;
    while (++at != operations.end() && *at == last + 1) ++last;
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, last);
  }
  if (text.size() <= kMaxLayers) return text;
  return text.substr(0, kMaxLayers - 3) + "...";
}

}  // namespace

double SecondsSince(const std::string& time, base::WallTime now) {
  const auto parsed = base::ParseTime(time);
  return parsed.ok() ? std::max(0.0, base::ToSeconds(now - *parsed)) : 0;
}

void LoadStatus(Pass& pass) {
  StatusState& state = pass.Own(&Memory::status);
  if (!state.written) {
    state.written.emplace(pass.world.stored_status);
    state.current = JobStatus::FromJson(pass.world.stored_status);
    state.current.conditions.KeepOnly(kJobConditions);
  }
  state.current.selector = std::string(kJobNameLabel) + "=" + pass.object.key().name;
}

void SetCondition(Pass& pass, const char* type, ConditionStatus status, Reason reason, std::string_view message) {
  Conditions& conditions = pass.report.conditions;
  // `kubectl describe` shows Events last, so the reason why a job has no plan, or lacks a pool, is published as one.
  const bool published = type == std::string_view(kPlannedCondition) || type == std::string_view(kPoolsUsableCondition);
  const Condition* before = conditions.Find(type);
  const bool changed = before == nullptr || !before->Has(reason) || before->message != message;
  if (changed && status == ConditionStatus::kFalse && published) {
    pass.Warning(reason, message);
  }
  conditions.Set(type, status, reason, message, pass.object.generation(), pass.world.now);
}

void SetUnplanned(Pass& pass, const Unplanned& why) {
  SetCondition(pass, kPlannedCondition, why.status, why.reason, why.message);
}

void SetPlanned(Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const std::string& unmet = pass.memory.replanning.unmet;
  SetCondition(pass, kPlannedCondition, ConditionStatus::kTrue, Reason::kPlanFound,
               model::Summary(record.plan, record.layer_names) + (unmet.empty() ? "" : ". " + unmet));
}

void FillPlanStatus(Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  const model::ExecutionPlan& plan = record.plan;
  PlanStatus status;
  status.generation = plan.generation;
  status.planner = plan.provenance.planner;
  status.summary = model::Summary(plan, record.layer_names);
  const std::map<std::string, std::string> zones = record.Zones();
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const model::Stage& stage = plan.stages[s];
    const double throughput = s < record.stage_throughput.size() ? record.stage_throughput[s] : 0;
    std::string layers;
    for (const model::OperationRange& range : stage.operations) {
      layers += fmt::format("{}{}-{}", layers.empty() ? "" : ",", range.first, range.end - 1);
    }
    for (const model::Group& group : stage.groups) {
      const auto zone = zones.find(group.pool);
      status.stages.push_back({layers, group.pool, group.units, throughput, zone == zones.end() ? "" : zone->second,
                               std::string(model::NameOf(stage.tables.place))});
    }
  }
  for (const auto& [pool, units] : model::TrainersByPool(plan)) {
    if (plan.stages.empty()) {
      const auto zone = zones.find(pool);
      status.stages.push_back({PlacedLayers(plan, pool), pool, units, 0, zone == zones.end() ? "" : zone->second});
    }
  }
  if (plan.servers && plan.servers->in_trainers) status.trainers_with_rows = plan.servers->units;
  if (plan.servers && !plan.servers->in_trainers) {
    status.servers = plan.servers->units;
    status.server_pool = plan.servers->pool;
  }
  status.usd_per_hour = record.UsdPerHour({});
  status.throughput = plan.estimate.throughput;
  status.throughput_spread = record.throughput_spread;
  status.simulated_throughput = plan.estimate.simulated_throughput;
  status.usd_total = plan.estimate.usd_total;
  status.alternatives = record.alternatives;
  status.catalog_revision = plan.provenance.catalog_revision;
  status.price_time = plan.provenance.price_time;
  // What the job had cost before its first plan is part of the promise: it was known.
  if (!pass.report.goodput) pass.report.goodput.emplace();
  if (!pass.report.goodput->promised && status.usd_total > 0) {
    const double before = pass.report.cost ? pass.report.cost->spent_usd : 0;
    pass.report.goodput->promised = PromiseStatus{before + status.usd_total, status.usd_per_hour, status.throughput};
  }
  pass.report.plan = std::move(status);
  if (pass.spec_is_valid) SetPlanned(pass);
}

void CheckPodsReady(Pass& pass) {
  const PlanRecord& record = *pass.memory.stored_plan.record;
  int running = 0;
  int trainers = 0;
  std::string waiting;
  for (const MemberSlot& slot : record.slots) {
    const kube::ObjectPtr pod = pass.Pod(slot.member);
    const bool runs = pod != nullptr && !pass.IsTerminating(*pod) && pod->String("/status/phase") == "Running";
    running += runs ? 1 : 0;
    trainers += runs && slot.role == Role::kTrainer ? 1 : 0;
    if (!runs && waiting.empty()) waiting = slot.member;
  }
  pass.report.replicas = trainers;
  const auto all = static_cast<int>(record.slots.size());
  if (running == all) {
    SetCondition(pass, kPodsReadyCondition, ConditionStatus::kTrue, Reason::kAllRunning,
                 fmt::format("All {} pods of the plan are running.", all));
  } else {
    const std::string& failure = pass.memory.starting.sentence;
    const std::string counted = fmt::format("{} of the {} pods of the plan are running.", running, all);
    if (failure.empty()) {
      SetCondition(pass, kPodsReadyCondition, ConditionStatus::kFalse, Reason::kPodsStarting,
                   fmt::format("{} Pod {} is not running yet.", counted, waiting));
    } else {
      SetCondition(pass, kPodsReadyCondition, ConditionStatus::kFalse, Reason::kPodCannotStart,
                   counted + " " + failure);
    }
  }
}

namespace {

// What was spent first is published soon, so that nobody pays for a job that seems to cost nothing; then whenever it
// has grown by half, or after kMoneyInterval.
bool IsMoneyDue(const Pass& pass, const kube::Json& now, const kube::Json& before) {
  const base::SteadyTime written = pass.memory.status.written_at;
  if (pass.world.steady >= written + kMoneyInterval) return true;
  // The status of a job that trains is written for other reasons.
  const bool trains = pass.report.conditions.IsTrue(kRunningCondition);
  if (trains || pass.world.steady < written + kFirstMoney) return false;
  const auto spent = [](const kube::Json& status) {
    const std::string text = kube::Object(status).String("/cost/spentUsd");
    return text.empty() ? 0.0 : std::strtod(text.c_str(), nullptr);
  };
  return spent(now) > kMoneyGrowth * spent(before);
}

}  // namespace

absl::Status WriteStatus(Pass& pass) {
  StatusState& state = pass.Own(&Memory::status);
  const kube::Json json = state.current.ToJson();
  const kube::Json before = state.written->Unpack();
  if (json == before) return absl::OkStatus();
  if (OnlyMoneyChanged(json, before) && !pass.world.paid_pods.empty() && !IsMoneyDue(pass, json, before)) {
    return absl::OkStatus();
  }
  const base::SteadyTime due = state.written_at + pass.options.status_interval;
  if (Urgent(json) == Urgent(before) && pass.world.steady < due) {
    pass.RequeueAfter(due - pass.world.steady);
    return absl::OkStatus();
  }
  kube::Json patch = json;
  const kube::Json foreign = ForeignConditions(pass);
  for (const kube::Json& condition : foreign) patch["conditions"].push_back(condition);
  RemoveAbsent(before, patch);
  kube::Json change = {{"status", patch}};
  // The list is replaced as a whole: not if another controller has changed its part of it since.
  if (!foreign.empty()) change["metadata"]["resourceVersion"] = pass.object.resource_version();
  MEDLEY_ASSIGN_OR_RETURN(const absl::Status written, pass.Ask(PatchJob{std::move(change), "status"}));
  if (kube::IsNotFound(written)) return absl::OkStatus();
  if (!foreign.empty() && kube::IsConflict(written)) {  // the cache is behind
    pass.RequeueAfter(kConflictRetry);
    return absl::OkStatus();
  }
  if (!written.ok()) return base::Annotate(written, "write the status of " + pass.object.key().ToString());
  state.written.emplace(json);
  state.written_at = pass.world.steady;
  return absl::OkStatus();
}

}  // namespace medley::ops::lifecycle

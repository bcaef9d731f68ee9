// Planning: the question to the scheduling service, and its answer as a record or as a condition.
#include "common/base/log.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/names.h"
#include "operator/api/resources.h"
#include "operator/builders/slots.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {
namespace {

std::vector<PlanStatus::Alternative> AlternativesOf(const model::PlanResult& result) {
  std::vector<PlanStatus::Alternative> alternatives;
  for (const model::Alternative& other : result.alternatives) {
    PlanStatus::Alternative out{other.label, 0, 0, 0, ""};
    if (other.plan) {
      out = {other.label, other.plan->throughput, other.plan->cost_per_hour, other.plan->cost_usd, ""};
    } else {
      out.reason = other.reasons.empty() ? "no plan" : other.reasons.front().message;
    }
    alternatives.push_back(std::move(out));
  }
  return alternatives;
}

}  // namespace

void JobPass::ReadRecord() {
  record_ = memory_.record;
  if (record_) return;
  const kube::Key key{object_.key().ns, PlanConfigMapName(object_.key().name)};
  const kube::ObjectPtr map = Current(kube::resources::ConfigMaps(), key, deps_.stores.config_maps.Get(key));
  if (map == nullptr) return;
  const auto owner = map->controller();
  if (!owner || owner->uid != object_.uid()) return;  // of a job that had this name before
  memory_.record_version = map->resource_version();
  auto record = ReadPlanRecord(*map);
  if (!record.ok()) {
    log::Warn("the stored plan is unreadable; the job is planned again", {{"error", base::ToString(record.status())}});
    return;
  }
  record_ = memory_.record = *std::move(record);
}

// Only over what this process has read or written: an operator that led before or after must not lose its plan.
absl::Status JobPass::SaveRecord(const PlanRecord& record) {
  kube::Object map = PlanConfigMap(*job_, record);
  map.SetAnnotation(kLeaderTermAnnotation, std::to_string(deps_.leader_term()));
  const kube::Resource maps = kube::resources::ConfigMaps();
  absl::StatusOr<kube::Object> written = base::NotFound("not written yet");
  if (!memory_.record_version.empty()) {
    kube::Object next = map;
    next.mutable_json()["metadata"]["resourceVersion"] = memory_.record_version;
    written = deps_.client.Update(maps, next);
  }
  if (kube::IsNotFound(written.status())) written = deps_.client.Create(maps, map);
  if (kube::IsAlreadyExists(written.status()) || kube::IsConflict(written.status())) {
    MEDLEY_RETURN_IF_ERROR(RecordOfAnother(map));
    map.mutable_json()["metadata"]["resourceVersion"] = memory_.record_version;
    written = deps_.client.Update(maps, map);
  }
  if (!written.ok()) return base::Annotate(written.status(), "write ConfigMap " + map.key().ToString());
  record_ = memory_.record = record;
  memory_.record_version = written->resource_version();
  return absl::OkStatus();
}

// Reads the plan that is there instead. OK: it is of a job that had this name before, and may be replaced.
absl::Status JobPass::RecordOfAnother(const kube::Object& map) {
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object there, deps_.client.Get(kube::resources::ConfigMaps(), map.key()));
  memory_.record_version = there.resource_version();
  const auto owner = there.controller();
  if (!owner || owner->uid != object_.uid()) return absl::OkStatus();
  memory_.record.reset();
  if (auto record = ReadPlanRecord(there); record.ok()) memory_.record = *std::move(record);
  return base::Aborted("write ConfigMap {}: another operator (term {}) has written it; the job goes on from there",
                       map.key().ToString(), there.annotation(kLeaderTermAnnotation));
}

std::optional<model::PlanResult> JobPass::Ask(const Pools& pools, const model::Profile& profile,
                                              const JobProgress& progress) {
  const model::PlanRequest request = BuildPlanRequest(*job_, profile, pools.offers, progress);
  auto result = deps_.scheduler.Plan(request, stop_);
  if (!result.ok()) {
    ExplainRefusal(result.status());
    return std::nullopt;
  }
  return *std::move(result);
}

void JobPass::ExplainRefusal(const absl::Status& status) {
  const std::string why = base::Message(status);
  if (IsSchedulerAway(status)) {
    deps_.metrics.CountPlan("unavailable");
    Again(deps_.options.scheduler_retry);
    if (record_) return;  // what runs, runs on
    SetCondition(kPlannedCondition, ConditionStatus::kUnknown, "SchedulerUnavailable", why);
    return;
  }
  deps_.metrics.CountPlan("refused");
  const bool planner = status.code() == absl::StatusCode::kNotFound || why.find("planner") != std::string::npos;
  const std::string message =
      planner ? fmt::format("spec.planner.name: '{}': {}", job_->planner.name, why) : "spec.model: " + why;
  if (record_) {
    TellReplan("ReplanRefused", message);
    return;
  }
  SetCondition(kPlannedCondition, ConditionStatus::kFalse, planner ? "UnknownPlanner" : "InvalidModel", message);
}

void JobPass::ExplainInfeasible(const std::vector<model::Reason>& reasons, const Pools& pools) {
  deps_.metrics.CountPlan("infeasible");
  std::string why;
  bool only_prices = !reasons.empty();
  for (const model::Reason& reason : reasons) {
    only_prices = only_prices && reason.constraint == "price";
    why += (why.empty() ? "" : "; ");
    if (!reason.message.empty()) {
      why += reason.message;
    } else {
      why += fmt::format("{}{}{}: needed {:g}, available {:g}", reason.constraint,
                         reason.resource_type.empty() ? "" : " of ", reason.resource_type, reason.needed,
                         reason.available);
    }
    for (const PoolOffer& offer : pools.offers) {
      const bool about_units = reason.constraint == "limit" || reason.constraint == "units";
      if (about_units && offer.pool->name == reason.resource_type) why += fmt::format(" (bounded by {})", offer.bound);
    }
  }
  if (why.empty()) why = "the scheduling service found no plan and gave no reason";
  if (record_) {
    TellReplan("ReplanInfeasible", "no plan meets the goal now, the present one stays: " + why);
    return;
  }
  SetCondition(kPlannedCondition, ConditionStatus::kFalse, only_prices ? "PoolUnpriced" : "Infeasible", why);
}

absl::Status JobPass::MakeFirstPlan() {
  std::optional<Pools> pools = UsablePools();
  if (!pools) {
    Again(deps_.options.scheduler_retry);
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<model::Profile> profile, Profiles(*pools));
  if (!profile) return absl::OkStatus();
  JobProgress progress;
  if (status_.observed && status_.observed->samples_total > 0) {  // resumed
    progress.remaining_samples =
        static_cast<double>(std::max<int64_t>(1, status_.observed->samples_total - status_.observed->samples));
  }
  progress.elapsed_seconds = SecondsSince(status_.start_time, now_);
  progress.spent_usd = status_.cost ? status_.cost->spent_usd : 0;
  std::optional<model::PlanResult> result = Ask(*pools, *profile, progress);
  while (result && !result->plan) {
    std::optional<Pools> others = PoolsInOtherZones(*pools);
    if (!others) break;
    pools = std::move(others);
    result = Ask(*pools, *profile, progress);
  }
  if (!result) return absl::OkStatus();
  if (!result->plan || !result->execution_plan) {
    ExplainInfeasible(result->reasons, *pools);
    return absl::OkStatus();
  }
  MEDLEY_RETURN_IF_ERROR(Accept(*result, *pools, *profile, status_.plan ? "Resumed" : "FirstPlan"));
  return status_.finished() ? absl::OkStatus() : RunPlan();
}

absl::Status JobPass::Accept(const model::PlanResult& result, const Pools& pools, const model::Profile& profile,
                             const std::string& reason) {
  PlanRecord record;
  record.plan = *result.execution_plan;
  const int layers = static_cast<int>(profile.model.layers.size());
  if (absl::Status valid = model::Validate(record.plan, layers); !valid.ok()) {
    return base::Annotate(valid, "the scheduling service answered a plan that is none");
  }
  for (const model::Stage& stage : record.plan.stages) {
    for (const model::Group& group : stage.groups) {
      if (pools.Find(group.pool) == nullptr)
        return base::Internal("the plan uses pool '{}', which was not offered", group.pool);
    }
  }
  record.usd_per_unit_hour = pools.prices;
  for (const model::Resource& resource : result.resources) {
    if (resource.price_per_unit_hour > 0) record.usd_per_unit_hour[resource.name] = resource.price_per_unit_hour;
  }
  int64_t generation = record_ ? record_->plan.generation : status_.plan ? status_.plan->generation : 0;
  if (observed_ != nullptr) generation = std::max({generation, observed_->generation, observed_->next_generation});
  record.plan.generation = generation + 1;
  record.plan.job_uid = object_.uid();
  std::vector<std::string> names;
  for (const kube::ObjectPtr& pod : Pods()) names.push_back(pod->key().name);
  record.slots =
      AssignSlots(job_->name(), record.plan, record_ ? StayingSlots() : std::vector<MemberSlot>(), names, pools.zones);
  record.layer_names = LayerNames(profile.model);
  for (const model::ProvisionedStage& stage : result.plan->stages) record.stage_throughput.push_back(stage.throughput);
  record.alternatives = AlternativesOf(result);
  record.reason = reason;
  record.accepted_at = base::FormatTime(now_);
  record.spec_generation = object_.generation();
  if (record_) {
    record.coordinator_uid = record_->coordinator_uid;
    record.coordinator_restarts = record_->coordinator_restarts;
  }
  MEDLEY_RETURN_IF_ERROR(SaveRecord(record));
  memory_.considered = InputsOf(pools);
  deps_.metrics.CountPlan("accepted");
  FillPlanStatus();
  const std::string summary = model::Summary(record.plan, record.layer_names);
  Event(EventRecorder::Type::kNormal, "PlanAccepted",
        fmt::format("generation {} ({}): {}; {:.1f} samples/s for {:.4g} USD/h, by planner {}", record.plan.generation,
                    reason, summary, record.plan.estimate.throughput, record.plan.estimate.usd_per_hour,
                    record.plan.provenance.planner));
  SetCondition(kPlannedCondition, ConditionStatus::kTrue, "PlanFound", summary);
  return absl::OkStatus();
}

}  // namespace medley::ops

// Status: observations into fields and conditions, and writes that are few.
#include <algorithm>
#include <cmath>

#include "common/base/status.h"
#include "kube/errors.h"
#include "operator/api/resources.h"
#include "operator/controllers/job_pass.h"

namespace medley::ops {
namespace {

// What a reader waits for; the rest of the status may be as old as the interval.
kube::Json Urgent(const kube::Json& status) {
  kube::Json urgent = kube::Json::object();
  for (const char* field : {"conditions", "plan", "lastRescale", "restarts", "startTime", "completionTime", "replicas",
                            "observedGeneration"}) {
    if (status.is_object() && status.contains(field)) urgent[field] = status[field];
  }
  return urgent;
}

}  // namespace

void JobPass::SetCondition(const char* type, ConditionStatus status, std::string_view reason,
                           std::string_view message) {
  // Why a job is not planned is worth an Event: it is what `kubectl describe` shows last.
  const Condition* before = status_.conditions.Find(type);
  const bool news = before == nullptr || before->reason != reason || before->message != message;
  if (news && status == ConditionStatus::kFalse && type == std::string_view(kPlannedCondition)) {
    Event(EventRecorder::Type::kWarning, reason, message);
  }
  status_.conditions.Set(type, status, reason, message, object_.generation(), now_);
}

void JobPass::Event(EventRecorder::Type type, std::string_view reason, std::string_view message) {
  deps_.events.Record(object_, type, reason, message);
}

void JobPass::Observe() {
  const Observation& seen = *observed_;
  ObservedStatus observed;
  observed.throughput = seen.throughput;
  observed.samples = seen.samples_done;
  observed.samples_total = seen.samples_total;
  observed.step = seen.step;
  observed.loss = seen.loss;
  observed.bad_rows = seen.bad_rows;
  observed.last_checkpoint_step = seen.last_checkpoint_step;
  observed.metrics = seen.metrics;
  if (seen.samples_total > 0) {
    observed.progress_percent = static_cast<int>(100 * seen.samples_done / seen.samples_total);
    const auto left = static_cast<double>(std::max<int64_t>(0, seen.samples_total - seen.samples_done));
    if (seen.throughput > 0) {
      observed.estimated_remaining_seconds = static_cast<int64_t>(std::ceil(left / seen.throughput));
    }
  }
  // A coordinator that starts anew has not read its journal yet: what was known stays.
  if (seen.samples_total > 0 || !status_.observed) status_.observed = observed;
  CostStatus cost;
  cost.spent_usd = seen.usd_spent;
  if (seen.samples_done > 0) {
    cost.usd_per_million_samples = seen.usd_spent / static_cast<double>(seen.samples_done) * 1e6;
  }
  cost.saved_usd = seen.usd_first_plan - seen.usd_spent;
  if (seen.usd_spent > 0 || !status_.cost) status_.cost = cost;
  deps_.metrics.AddSpent(seen.usd_spent - memory_.spent_counted);
  memory_.spent_counted = std::max(memory_.spent_counted, seen.usd_spent);
  ObserveSwitches();
  const bool runs = seen.generation > 0 && seen.phase != JobPhase::kUnknown && seen.phase != JobPhase::kWaiting &&
                    seen.phase != JobPhase::kFailed && seen.phase != JobPhase::kSuspended;
  if (runs) {
    SetCondition(kRunningCondition, ConditionStatus::kTrue, "GenerationCommitted",
                 "a generation has committed and samples are trained");
    if (status_.conditions.IsTrue(kRestartingCondition)) {
      SetCondition(kRestartingCondition, ConditionStatus::kFalse, "Restarted", "the job runs again");
    }
  }
  if (record_ && seen.generation > 0 && seen.generation < record_->plan.generation && seen.phase != JobPhase::kFailed) {
    SetCondition(kRescalingCondition, ConditionStatus::kTrue, record_->reason,
                 fmt::format("from generation {} to generation {}", seen.generation, record_->plan.generation));
  } else if (record_ && InForce() && status_.conditions.IsTrue(kRescalingCondition)) {
    SetCondition(kRescalingCondition, ConditionStatus::kFalse, "Rescaled",
                 fmt::format("generation {} is in force", record_->plan.generation));
  }
}

void JobPass::ObserveSwitches() {
  for (const GenerationSwitch& done : observed_->switches) {
    if (done.to_generation <= memory_.last_switch_generation) continue;
    memory_.last_switch_generation = done.to_generation;
    const bool old = status_.last_rescale && status_.last_rescale->to_generation >= done.to_generation;
    if (done.from_generation == 0 || old) continue;
    deps_.metrics.ObserveSwitch(object_.key(), done.recovery, done.pause_seconds, static_cast<double>(done.lost_steps));
    // One word here; the coordinator's sentence goes into the Event.
    status_.last_rescale = RescaleStatus{done.from_generation,
                                         done.to_generation,
                                         done.cause,
                                         done.pause_seconds,
                                         done.at.empty() ? base::FormatTime(now_) : done.at,
                                         done.recovery,
                                         done.lost_steps};
    status_.rescales.push_back(*status_.last_rescale);
    if (status_.rescales.size() > 32) status_.rescales.erase(status_.rescales.begin());
    Event(EventRecorder::Type::kNormal, done.recovery ? "Recovered" : "Rescaled",
          fmt::format("generation {} -> {} ({}): training stood still for {:.3f} s, {} steps trained again",
                      done.from_generation, done.to_generation, done.reason, done.pause_seconds, done.lost_steps));
  }
}

void JobPass::FillPlanStatus() {
  const model::ExecutionPlan& plan = record_->plan;
  PlanStatus status;
  status.generation = plan.generation;
  status.planner = plan.provenance.planner;
  status.summary = model::Summary(plan, record_->layer_names);
  const std::map<std::string, std::string> zones = record_->Zones();
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const model::Stage& stage = plan.stages[s];
    const double throughput = s < record_->stage_throughput.size() ? record_->stage_throughput[s] : 0;
    std::string layers;
    for (const model::OperationRange& range : stage.operations) {
      layers += fmt::format("{}{}-{}", layers.empty() ? "" : ",", range.first, range.end - 1);
    }
    for (const model::Group& group : stage.groups) {
      const auto zone = zones.find(group.pool);
      status.stages.push_back(
          {layers, group.pool, group.units, throughput, zone == zones.end() ? "" : zone->second});
    }
  }
  if (plan.servers) {
    status.servers = plan.servers->units;
    status.server_pool = plan.servers->pool;
  }
  status.usd_per_hour = record_->UsdPerHour({});
  status.throughput = plan.estimate.throughput;
  status.usd_total = plan.estimate.usd_total;
  status.alternatives = record_->alternatives;
  status.catalog_revision = plan.provenance.catalog_revision;
  status.price_time = plan.provenance.price_time;
  status_.plan = std::move(status);
  if (spec_ok_) SetCondition(kPlannedCondition, ConditionStatus::kTrue, "PlanFound", status_.plan->summary);
}

void JobPass::CheckPodsReady() {
  int running = 0;
  int trainers = 0;
  std::string waiting;
  for (const MemberSlot& slot : record_->slots) {
    const kube::ObjectPtr pod = Pod(slot.member);
    const bool runs = pod != nullptr && !Going(*pod) && pod->String("/status/phase") == "Running";
    running += runs ? 1 : 0;
    trainers += runs && slot.role == Role::kTrainer ? 1 : 0;
    if (!runs && waiting.empty()) waiting = slot.member;
  }
  status_.replicas = trainers;
  const auto all = static_cast<int>(record_->slots.size());
  if (running == all) {
    SetCondition(kPodsReadyCondition, ConditionStatus::kTrue, "AllRunning",
                 fmt::format("all {} pods of the plan run", all));
  } else {
    SetCondition(kPodsReadyCondition, ConditionStatus::kFalse, "PodsStarting",
                 fmt::format("{} of {} pods of the plan run; first that does not: {}", running, all, waiting));
  }
}

absl::Status JobPass::WriteStatus() {
  kube::Json json = status_.ToJson();
  const kube::Json before = memory_.written_status->Unpack();
  if (json == before) return absl::OkStatus();
  const bool urgent = Urgent(json) != Urgent(before);
  const base::SteadyTime due = memory_.status_written_at + deps_.options.status_interval;
  if (!urgent && steady_ < due) {
    Again(due - steady_);
    return absl::OkStatus();
  }
  kube::Json patch = json;
  if (before.is_object()) {
    for (const auto& [field, value] : before.items()) {
      if (!patch.contains(field)) patch[field] = nullptr;  // a merge patch removes what it sets to null
    }
  }
  const auto written =
      deps_.client.Patch(TrainingJobs(), object_.key(), kube::PatchType::kMerge, {{"status", patch}}, {}, "status");
  if (kube::IsNotFound(written.status())) return absl::OkStatus();
  if (!written.ok()) return base::Annotate(written.status(), "write the status of " + object_.key().ToString());
  memory_.written_status.emplace(json);
  memory_.status_written_at = steady_;
  deps_.metrics.CountStatusWrite();
  return absl::OkStatus();
}

std::vector<kube::ObjectPtr> JobPass::Pods() const {
  std::vector<kube::ObjectPtr> pods;
  for (const kube::ObjectPtr& pod : deps_.stores.pods.ByIndex("owner", object_.uid())) {
    pods.push_back(pod);
  }
  return pods;
}

kube::ObjectPtr JobPass::Pod(const std::string& name) const {
  const kube::ObjectPtr pod = deps_.stores.pods.Get({object_.key().ns, name});
  if (pod == nullptr) return nullptr;
  const auto owner = pod->controller();
  return owner && owner->uid == object_.uid() ? pod : nullptr;
}

std::string JobPass::LogOf(const kube::Object& pod) {
  const auto log =
      deps_.client.GetRaw(kube::resources::Pods().Path(pod.key().ns, pod.key().name, "log") + "?tailLines=20");
  return log.ok() ? *log : "";
}

void JobPass::Again(base::nanoseconds in) {
  const base::nanoseconds wish = std::max(in, base::nanoseconds(base::milliseconds(1)));
  again_ = again_ ? std::min(*again_, wish) : wish;
}

}  // namespace medley::ops

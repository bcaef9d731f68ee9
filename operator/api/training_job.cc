#include "operator/api/training_job.h"

#include <string_view>
#include <utility>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/document/reader.h"
#include "common/model/job_schema.h"
#include "kube/schema/shape.h"
#include "operator/api/bounds.h"
#include "operator/api/resources.h"

namespace medley::ops {
namespace {

using document::Reader;
using kube::Json;

// A duration that time can be added to without an overflow.
double Seconds(const Reader& reader, std::string_view field, double otherwise) {
  const double seconds = reader.Seconds(field, otherwise);
  if (seconds <= kLongestSeconds) return seconds;
  reader.Fail(field, fmt::format("must be at most {:.0f}h", kLongestSeconds / 3600));
  return otherwise;
}

absl::StatusOr<double> ParsePercent(const std::string& text) {
  if (text.empty() || text.back() != '%') return base::InvalidArgument("'{}' is not a percentage such as 10%", text);
  MEDLEY_ASSIGN_OR_RETURN(const double percent, base::ParseQuantity(text.substr(0, text.size() - 1)));
  return percent / 100;
}

model::ScheduleKind ParseSchedule(const std::string& text) {
  if (text == "GPIPE") return model::ScheduleKind::kGpipe;
  if (text == "ASYNC_1F1B") return model::ScheduleKind::kAsync1F1B;
  return model::ScheduleKind::kSync1F1B;
}

constexpr std::pair<std::string_view, model::Grouping> kHierarchies[] = {
    {"Auto", model::Grouping::kAuto}, {"Pool", model::Grouping::kPool}, {"ByLinks", model::Grouping::kLinks}};

model::Synchronisation ReadSync(const Reader& reader) {
  model::Synchronisation sync;
  const std::string mode = reader.String("mode");
  if (mode == "None") sync.mode = model::SyncMode::kNone;
  if (mode == "Percentage") sync.mode = model::SyncMode::kPercentage;
  if (mode == "Flexible") sync.mode = model::SyncMode::kFlexible;
  sync.fraction = reader.Number("fraction", sync.fraction);
  sync.target_ratio = reader.Number("targetRatio", sync.target_ratio);
  if (reader.Has("anomaly")) {
    const Reader anomaly = reader.Child("anomaly");
    const bool window = anomaly.String("detector") == "Window";
    sync.detector = window ? model::AnomalyDetector::kWindow : model::AnomalyDetector::kRunningMean;
    sync.anomaly_window = static_cast<int>(anomaly.Number("window", sync.anomaly_window));
    sync.anomaly_threshold = anomaly.Number("threshold", sync.anomaly_threshold);
  }
  const std::string hierarchy = reader.String("hierarchy");
  for (const auto& [name, grouping] : kHierarchies) {
    if (hierarchy == name) sync.hierarchy = grouping;
  }
  return sync;
}

PodGroupChoice ParsePodGroup(const std::string& text) {
  if (text == "None") return PodGroupChoice::kNone;
  if (text == "SchedulerPlugins") return PodGroupChoice::kSchedulerPlugins;
  if (text == "Volcano") return PodGroupChoice::kVolcano;
  return PodGroupChoice::kAuto;
}

std::optional<VolumeMount> ReadVolume(const Reader& parent) {
  if (!parent.Has("volume")) return std::nullopt;
  VolumeMount volume;
  volume.source = parent.Raw("volume");
  volume.mount_path = parent.Child("volume").String("mountPath");
  if (volume.source.is_object()) volume.source.erase("mountPath");
  return volume;
}

RunPolicy ReadRunPolicy(const Reader& reader) {
  RunPolicy policy;
  policy.suspend = reader.Bool("suspend", false);
  policy.backoff_limit = static_cast<int>(reader.Int("backoffLimit", 6));
  if (reader.Has("activeDeadlineSeconds")) policy.active_deadline_seconds = reader.Int("activeDeadlineSeconds", 0);
  if (reader.Has("ttlSecondsAfterFinished")) {
    policy.ttl_seconds_after_finished = reader.Int("ttlSecondsAfterFinished", 0);
  }
  const std::string clean = reader.String("cleanPodPolicy", "Running");
  policy.clean_pod_policy = clean == "All"    ? CleanPodPolicy::kAll
                            : clean == "None" ? CleanPodPolicy::kNone
                                              : CleanPodPolicy::kRunning;
  policy.managed_by = reader.String("managedBy", kThisOperator);
  const Reader scheduling = reader.Child("schedulingPolicy");
  policy.queue = scheduling.String("queue");
  policy.priority_class = scheduling.String("priorityClass");
  policy.scheduler_name = scheduling.String("schedulerName");
  policy.pod_group = ParsePodGroup(scheduling.String("podGroup"));
  const Reader budget = reader.Child("disruptionBudget");
  policy.disruption_budget = budget.Bool("enabled", true);
  policy.max_unavailable = static_cast<int>(budget.Int("maxUnavailable", 1));
  return policy;
}

Elasticity ReadElasticity(const Reader& reader, absl::Status& percent_status) {
  Elasticity elasticity;
  elasticity.enabled = reader.Bool("enabled", true);
  elasticity.min_units = static_cast<int>(reader.Int("minUnits", 1));
  elasticity.max_units = static_cast<int>(reader.Int("maxUnits", 64));
  const Reader replan = reader.Child("replan");
  elasticity.on_price_change = replan.Bool("onPriceChange", true);
  elasticity.cooldown_seconds = Seconds(replan, "cooldown", 300);
  const auto saving = ParsePercent(replan.String("minSaving", "10%"));
  if (saving.ok()) {
    elasticity.min_saving = *saving;
  } else {
    percent_status = base::Annotate(saving.status(), "spec.elasticity.replan.minSaving");
  }
  return elasticity;
}

}  // namespace

void ApplyJobDefaults(Json& spec) {
  if (!spec.is_object()) return;
  // Objects whose fields have defaults and that the schema does not give to every job: none means the same as an empty
  // one.
  const auto add_empty = [](Json& parent, const char* name) {
    if (parent.is_object() && (!parent.contains(name) || parent[name].is_null())) parent[name] = Json::object();
  };
  add_empty(spec, "data");
  add_empty(spec["data"], "schema");
  if (spec.contains("model") && spec["model"].is_object() && spec["model"].contains("name")) {
    add_empty(spec["model"], "parameters");
  }
  kube::ApplyDefaults(&spec, kube::Schema(&model::JobSchema(), nullptr));
}

bool ManagedByThisOperator(const kube::Object& job) {
  const Json& value = job.At("/spec/runPolicy/managedBy");
  return !value.is_string() || value == kThisOperator;
}

bool TrainingJob::managed_by_us() const { return run_policy.managed_by == kThisOperator; }

absl::StatusOr<TrainingJob> TrainingJob::FromObject(const kube::Object& object) {
  if (!object.At("/spec").is_object()) return base::InvalidArgument("spec must be an object");
  MEDLEY_RETURN_IF_ERROR(CheckSize(object.At("/spec")));
  TrainingJob job;
  job.object = object;
  job.name_ = object.key().name;
  job.spec = object.At("/spec");
  ApplyJobDefaults(job.spec);
  const Reader spec(job.spec, "spec");
  const Reader objective = spec.Child("objective");
  job.objective = {objective.Number("minThroughput", 0),
                   Seconds(objective, "deadline", 0),
                   objective.Quantity("budgetUsd", 0),
                   objective.Quantity("maxUsdPerHour", 0),
                   objective.Bool("fastest", false) || objective.String("minimize") == "Seconds",
                   objective.String("minimize") == "UsdPerHour"};
  const Reader planner = spec.Child("planner");
  job.planner = {planner.String("name"), Seconds(planner, "timeBudget", 5),
                 ParseSchedule(planner.Child("parallelism").String("schedule")),
                 static_cast<int>(planner.Child("parallelism").Number("maxStaleness", 0)),
                 ReadSync(spec.Child("training").Child("sync"))};
  job.pools = spec.Child("resources").Strings("pools");
  job.server_pool = spec.Child("resources").String("serverPool");
  absl::Status percent;
  job.elasticity = ReadElasticity(spec.Child("elasticity"), percent);
  job.run_policy = ReadRunPolicy(spec.Child("runPolicy"));
  job.data_volume = ReadVolume(spec.Child("data"));
  job.checkpoint_volume = ReadVolume(spec.Child("checkpoint"));
  const Reader templates = spec.Child("template");
  job.pod_template = ReadPodTemplate(templates);
  job.coordinator_template = ReadPodTemplate(templates.Child("coordinator"));
  job.server_template = ReadPodTemplate(templates.Child("servers"));
  job.trainer_template = ReadPodTemplate(templates.Child("trainers"));
  const Reader training = spec.Child("training");
  job.seed = static_cast<uint64_t>(training.Int("seed", 1));
  job.epochs = static_cast<int>(training.Int("epochs", 1));
  job.batch_size = static_cast<int>(training.Int("batchSize", 512));
  job.micro_batches = static_cast<int>(training.Int("microBatches", 4));
  job.profiling_wait_seconds = Seconds(spec.Child("profiling"), "wait", 120);
  MEDLEY_RETURN_IF_ERROR(spec.status());
  MEDLEY_RETURN_IF_ERROR(percent);
  MEDLEY_RETURN_IF_ERROR(CheckJobBounds(job.spec));
  return job;
}

}  // namespace medley::ops

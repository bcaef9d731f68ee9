#include "operator/api/training_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
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
void ReadSeconds(const Reader& reader, std::string_view field, double& out) {
  const double seconds = reader.Seconds(field, out);
  if (seconds <= kLongestSeconds) {
    out = seconds;
  } else {
    reader.Fail(field, fmt::format("must be at most {:.0f}h", kLongestSeconds / 3600));
  }
}

void ReadQuantity(const Reader& reader, std::string_view field, double& out) { out = reader.Quantity(field, out); }

// "10%" as 0.1.
void ReadPercent(const Reader& reader, std::string_view field, double& out) {
  if (!reader.Has(field)) return;
  const std::string text = reader.String(field);
  const auto number =
      text.ends_with('%') ? base::ParseQuantity(text.substr(0, text.size() - 1)) : absl::StatusOr<double>();
  if (number.ok()) {
    out = *number / 100;
  } else {
    reader.Fail(field, fmt::format("must be a percentage such as 10%, is '{}'", text));
  }
}

// `names`: of the enumeration's values, in their order.
template <typename Enum>
void ReadEnum(const Reader& reader, std::string_view field, std::initializer_list<std::string_view> names, Enum& out) {
  if (!reader.Has(field)) return;
  const std::string text = reader.String(field);
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) {
    out = static_cast<Enum>(found - names.begin());
  } else {
    reader.Fail(field, fmt::format("must be one of {}, is '{}'", fmt::join(names, ", "), text));
  }
}

#include "operator/api/job_policies.inc"  // Read* of the structs of job_policies.h, made by cmake/job_fields.py

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

std::optional<VolumeMount> ReadVolume(const Reader& parent) {
  if (!parent.Has("volume")) return std::nullopt;
  VolumeMount volume;
  volume.source = parent.Raw("volume");
  volume.mount_path = parent.Child("volume").String("mountPath");
  if (volume.source.is_object()) volume.source.erase("mountPath");
  return volume;
}

}  // namespace

void ApplyJobDefaults(Json& spec) {
  if (!spec.is_object()) return;
  // Objects whose fields have defaults and that the schema does not give to every job: none means the same as an empty
  // one.
  const auto add_empty = [](Json& parent, const char* name) {
    if (parent.is_object() && (!parent.contains(name) || parent[name].is_null())) parent[name] = Json::object();
  };
  const bool trains_program = spec.contains("program") && !spec.contains("data");
  if (!trains_program) {
    add_empty(spec, "data");
    add_empty(spec["data"], "schema");
  }
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
  const Reader objective = spec.Child("objective"), planner = spec.Child("planner");
  ReadObjective(objective, job.objective);
  job.objective.fastest = objective.Bool("fastest", false) || objective.String("minimize") == "Seconds";
  job.objective.least_usd_per_hour = objective.String("minimize") == "UsdPerHour";
  ReadPlannerChoice(planner, job.planner);
  job.planner.schedule = ParseSchedule(planner.Child("parallelism").String("schedule"));
  job.planner.sync = ReadSync(spec.Child("training").Child("sync"));
  job.pools = spec.Child("resources").Strings("pools");
  job.server_pool = spec.Child("resources").String("serverPool");
  ReadElasticity(spec.Child("elasticity"), job.elasticity);
  ReadRunPolicy(spec.Child("runPolicy"), job.run_policy);
  job.data_volume = ReadVolume(spec.Child("data"));
  job.checkpoint_volume = ReadVolume(spec.Child("checkpoint"));
  job.checkpoint_uri = spec.Child("checkpoint").String("uri");
  const Reader storage = spec.Child("storage");
  job.storage = {storage.String("secretName"), storage.String("endpoint"), storage.String("region"),
                 storage.Bool("pathStyle", false), storage.String("caBundle")};
  const Reader templates = spec.Child("template");
  job.pod_template = ReadPodTemplate(templates);
  job.coordinator_template = ReadPodTemplate(templates.Child("coordinator"));
  job.server_template = ReadPodTemplate(templates.Child("servers"));
  job.trainer_template = ReadPodTemplate(templates.Child("trainers"));
  const Reader training = spec.Child("training");
  training.Read("seed", job.seed);
  training.Read("epochs", job.epochs);
  training.Read("batchSize", job.batch_size);
  training.Read("microBatches", job.micro_batches);
  ReadSeconds(spec.Child("profiling"), "wait", job.profiling_wait_seconds);
  if (spec.Has("program")) {
    const Reader program = spec.Child("program");
    TrainedProgram& trained = job.program.emplace();
    trained.image = program.String("image");
    program.Child("scaling").Read("units", trained.legal_units);
    program.Child("scaling").Read("measure", trained.measures_sizes);
    program.Read("samplesPerStep", job.batch_size);
  }
  MEDLEY_RETURN_IF_ERROR(spec.status());
  MEDLEY_RETURN_IF_ERROR(CheckJobBounds(job.spec));
  return job;
}

}  // namespace medley::ops

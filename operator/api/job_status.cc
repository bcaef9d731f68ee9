#include "operator/api/job_status.h"

#include <fmt/format.h>

#include <cmath>

#include "common/base/quantity.h"
#include "common/document/reader.h"

namespace medley::ops {
namespace {

using document::Reader;
using kube::Json;

std::string Usd(double value) { return base::FormatDecimal(value, 6); }
// Rounds to 1 / `per_unit` (10: one decimal), so that noise in a measurement does not change the status. Dividing by a
// whole number, rather than multiplying by 0.1, gives the double that prints as the short decimal.
double Rounded(double value, double per_unit) {
  return std::isfinite(value) ? std::round(value * per_unit) / per_unit : 0;
}

PlanStatus ReadPlan(const Reader& reader) {
  PlanStatus plan;
  plan.generation = reader.Int("generation", 0);
  plan.planner = reader.String("planner");
  plan.summary = reader.String("summary");
  for (const Reader& stage : reader.List("stages")) {
    plan.stages.push_back({stage.String("layers"), stage.String("pool"), static_cast<int>(stage.Int("units", 0)),
                           stage.Number("throughput", 0), stage.String("zone"), stage.String("tables")});
  }
  for (const Reader& other : reader.List("alternatives")) {
    plan.alternatives.push_back({other.String("label"), other.Number("throughput", 0), other.Quantity("usdPerHour", 0),
                                 other.Quantity("usdTotal", 0), other.String("reason")});
  }
  plan.usd_total = reader.Quantity("usdTotal", 0);
  plan.servers = static_cast<int>(reader.Int("servers", 0));
  plan.server_pool = reader.String("serverPool");
  plan.trainers_with_rows = static_cast<int>(reader.Int("trainersWithRows", 0));
  plan.usd_per_hour = reader.Quantity("usdPerHour", 0);
  plan.throughput = reader.Number("throughput", 0);
  plan.throughput_spread = reader.Number("throughputSpread", 0);
  plan.simulated_throughput = reader.Number("simulatedThroughput", 0);
  plan.catalog_revision = reader.Int("catalogRevision", 0);
  plan.price_time = reader.String("priceTime");
  return plan;
}

Json PlanJson(const PlanStatus& plan) {
  Json stages = Json::array();
  for (const PlanStatus::Stage& stage : plan.stages) {
    Json item = {{"layers", stage.layers},
                 {"pool", stage.pool},
                 {"units", stage.units},
                 {"throughput", Rounded(stage.throughput, 10)}};
    if (!stage.zone.empty()) item["zone"] = stage.zone;
    if (!stage.tables.empty()) item["tables"] = stage.tables;
    stages.push_back(std::move(item));
  }
  Json alternatives = Json::array();
  for (const PlanStatus::Alternative& other : plan.alternatives) {
    Json item = {{"label", other.label}};
    if (other.reason.empty()) {
      item["throughput"] = Rounded(other.throughput, 10);
      item["usdPerHour"] = Usd(other.usd_per_hour);
      item["usdTotal"] = Usd(other.usd_total);
    } else {
      item["reason"] = other.reason;
    }
    alternatives.push_back(std::move(item));
  }
  Json json = {{"generation", plan.generation},
               {"planner", plan.planner},
               {"summary", plan.summary},
               {"stages", std::move(stages)},
               {"servers", plan.servers},
               {"usdPerHour", Usd(plan.usd_per_hour)},
               {"usdTotal", Usd(plan.usd_total)},
               {"throughput", Rounded(plan.throughput, 10)},
               {"alternatives", std::move(alternatives)},
               {"catalogRevision", plan.catalog_revision}};
  if (plan.throughput_spread > 0) json["throughputSpread"] = Rounded(plan.throughput_spread, 1e4);
  if (plan.simulated_throughput > 0) json["simulatedThroughput"] = Rounded(plan.simulated_throughput, 10);
  if (!plan.server_pool.empty()) json["serverPool"] = plan.server_pool;
  if (plan.trainers_with_rows > 0) json["trainersWithRows"] = plan.trainers_with_rows;
  if (!plan.price_time.empty()) json["priceTime"] = plan.price_time;
  return json;
}

std::map<std::string, double> ReadMetrics(const Reader& reader) {
  std::map<std::string, double> metrics;
  const Json json = reader.Raw("metrics");
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) metrics[name] = value.get<double>();
  }
  return metrics;
}

Json MetricsJson(const std::map<std::string, double>& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) json[name] = value;
  }
  return json;
}

EvaluationStatus ReadEvaluation(const Reader& reader) {
  EvaluationStatus evaluation{reader.Int("step", 0), static_cast<int>(reader.Int("epochs", 0)), std::nullopt,
                              ReadMetrics(reader), reader.String("at")};
  if (reader.Has("loss")) evaluation.loss = reader.Number("loss", 0);
  return evaluation;
}

Json EvaluationJson(const EvaluationStatus& evaluation) {
  Json json = {{"step", evaluation.step}, {"epochs", evaluation.epochs}, {"metrics", MetricsJson(evaluation.metrics)}};
  if (evaluation.loss && std::isfinite(*evaluation.loss)) json["loss"] = Rounded(*evaluation.loss, 1e6);
  if (!evaluation.at.empty()) json["at"] = evaluation.at;
  return json;
}

// For people: "2h05m", "12m30s", "45s".
std::string Span(int64_t seconds) {
  if (seconds >= 3600) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  if (seconds >= 60) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}s", seconds);
}

ObservedStatus ReadObserved(const Reader& reader) {
  ObservedStatus observed;
  observed.throughput = reader.Number("throughput", 0);
  observed.samples = reader.Int("samples", 0);
  observed.samples_total = reader.Int("samplesTotal", 0);
  observed.step = reader.Int("step", 0);
  observed.epoch = reader.String("epoch");
  observed.progress_percent = static_cast<int>(reader.Int("progressPercent", 0));
  observed.estimated_remaining_seconds = reader.Int("estimatedRemainingSeconds", 0);
  observed.loss = reader.Number("loss", 0);
  observed.bad_rows = reader.Int("badRows", 0);
  observed.last_checkpoint_step = reader.Int("lastCheckpointStep", 0);
  if (reader.Has("embeddings")) {
    const Reader rows = reader.Child("embeddings");
    observed.embeddings =
        EmbeddingStatus{rows.Int("rowsInMemory", 0), rows.Int("rowsOnDisk", 0), rows.Number("hitRate", 0)};
  }
  if (reader.Has("tables")) {
    const Reader tables = reader.Child("tables");
    observed.tables = TablesStatus{tables.String("place"), tables.Number("hitRate", 0), tables.String("message")};
  }
  observed.metrics = ReadMetrics(reader);
  for (const Reader& item : reader.List("evaluations")) observed.evaluations.push_back(ReadEvaluation(item));
  if (reader.Has("best")) {
    const Reader best = reader.Child("best");
    observed.best = BestStatus{best.Int("step", 0), static_cast<int>(best.Int("epoch", 0)), best.String("metric"),
                               best.Number("value", 0), best.String("data")};
  }
  if (reader.Has("exported")) {
    const Reader exported = reader.Child("exported");
    observed.exported =
        ExportedStatus{exported.String("model"), exported.Int("step", 0), static_cast<int>(exported.Int("epoch", 0))};
  }
  for (const Reader& item : reader.List("course")) {
    observed.course.push_back({item.Int("step", 0), item.Number("loss", 0), item.Number("throughput", 0)});
  }
  return observed;
}

Json ObservedJson(const ObservedStatus& observed) {
  Json json = {{"throughput", Rounded(observed.throughput, 10)},
               {"samples", observed.samples},
               {"samplesTotal", observed.samples_total},
               {"step", observed.step},
               {"progressPercent", observed.progress_percent},
               {"estimatedRemainingSeconds", observed.estimated_remaining_seconds},
               {"loss", Rounded(observed.loss, 1e6)},
               {"badRows", observed.bad_rows},
               {"lastCheckpointStep", observed.last_checkpoint_step}};
  if (!observed.epoch.empty()) json["epoch"] = observed.epoch;
  if (const auto& rows = observed.embeddings) {
    json["embeddings"] = {{"rowsInMemory", rows->rows_in_memory},
                          {"rowsOnDisk", rows->rows_on_disk},
                          {"hitRate", Rounded(rows->hit_rate, 1000)}};
  }
  if (const auto& tables = observed.tables) {
    json["tables"] = {{"place", tables->place}, {"hitRate", Rounded(tables->hit_rate, 1000)}};
    if (!tables->message.empty()) json["tables"]["message"] = tables->message;
  }
  if (observed.samples_total > 0) json["progress"] = fmt::format("{}%", observed.progress_percent);
  if (Json metrics = MetricsJson(observed.metrics); !metrics.empty()) json["metrics"] = std::move(metrics);
  for (const EvaluationStatus& evaluation : observed.evaluations) {
    json["evaluations"].push_back(EvaluationJson(evaluation));
  }
  if (const auto& best = observed.best; best && std::isfinite(best->value)) {
    json["best"] = {{"step", best->step},
                    {"epoch", best->epoch},
                    {"metric", best->metric},
                    {"value", best->value},
                    {"data", best->data}};
  }
  if (const auto& exported = observed.exported) {
    json["exported"] = {{"model", exported->model}, {"step", exported->step}, {"epoch", exported->epoch}};
  }
  for (const CoursePoint& point : observed.course) {
    json["course"].push_back(
        {{"step", point.step}, {"loss", Rounded(point.loss, 1e6)}, {"throughput", Rounded(point.throughput, 10)}});
  }
  return json;
}

RescaleStatus ReadRescale(const Reader& reader) {
  return {reader.Int("fromGeneration", 0),
          reader.Int("toGeneration", 0),
          reader.String("reason"),
          reader.Number("pauseSeconds", 0),
          reader.String("at"),
          reader.Bool("recovery", false),
          reader.Int("lostSteps", 0),
          reader.Number("startSeconds", 0)};
}

Json RescaleJson(const RescaleStatus& rescale) {
  Json json = {{"fromGeneration", rescale.from_generation},
               {"toGeneration", rescale.to_generation},
               {"reason", rescale.reason},
               {"pauseSeconds", Rounded(rescale.pause_seconds, 1e4)},
               {"recovery", rescale.recovery},
               {"lostSteps", rescale.lost_steps}};
  if (!rescale.at.empty()) json["at"] = rescale.at;
  if (rescale.start_seconds > 0) json["startSeconds"] = Rounded(rescale.start_seconds, 1e4);
  return json;
}

}  // namespace

std::string JobStatus::Phase() const {
  if (conditions.IsTrue(kFailedCondition)) return "Failed";
  if (conditions.IsTrue(kCompleteCondition)) return "Complete";
  if (conditions.IsTrue(kSuspendedCondition)) return "Suspended";
  if (conditions.IsTrue(kRestartingCondition)) return "Restarting";
  if (conditions.IsTrue(kRescalingCondition)) return "Rescaling";
  if (conditions.IsTrue(kRunningCondition)) return "Running";
  if (conditions.IsTrue(kPlannedCondition)) return "Starting";
  const Condition* planned = conditions.Find(kPlannedCondition);
  if (planned != nullptr && (planned->Has(ops::Reason::kProfiling) || planned->Has(ops::Reason::kQueued)))
    return planned->reason;
  return "Pending";
}

std::string JobStatus::Reason() const {
  for (const char* type :
       {kFailedCondition, kCompleteCondition, kSuspendedCondition, kRestartingCondition, kRescalingCondition}) {
    if (conditions.IsTrue(type)) return conditions.Find(type)->reason;
  }
  if (conditions.IsTrue(kRunningCondition)) return "";
  const Condition* planned = conditions.Find(kPlannedCondition);
  if (planned != nullptr && planned->status != ConditionStatus::kTrue) return planned->reason;
  const Condition* ready = conditions.Find(kPodsReadyCondition);
  return ready != nullptr && ready->status == ConditionStatus::kFalse ? ready->reason : "";
}

JobStatus JobStatus::FromJson(const Json& json) {
  JobStatus status;
  const Reader reader(json, "status");
  status.observed_generation = reader.Int("observedGeneration", 0);
  status.conditions = Conditions::FromJson(reader.Raw("conditions"));
  if (reader.Has("plan")) status.plan = ReadPlan(reader.Child("plan"));
  if (reader.Has("observed")) status.observed = ReadObserved(reader.Child("observed"));
  if (reader.Has("cost")) {
    const Reader cost = reader.Child("cost");
    status.cost =
        CostStatus{cost.Quantity("spentUsd", 0), cost.String("countedUntil"), cost.Quantity("usdPerMillionSamples", 0)};
    if (cost.Has("savedUsd")) status.cost->saved_usd = cost.Quantity("savedUsd", 0);
  }
  if (reader.Has("goodput")) status.goodput = GoodputStatus::FromJson(reader.Raw("goodput"));
  status.replicas = static_cast<int>(reader.Int("replicas", 0));
  status.selector = reader.String("selector");
  status.restarts = static_cast<int>(reader.Int("restarts", 0));
  status.counted_restarts = static_cast<int>(reader.Int("countedRestarts", 0));
  status.coordinator_term = reader.Int("coordinatorTerm", 0);
  status.restart_progress = reader.Int("restartProgress", 0);
  if (reader.Has("lastRescale")) status.last_rescale = ReadRescale(reader.Child("lastRescale"));
  for (const Reader& rescale : reader.List("rescales")) status.rescales.push_back(ReadRescale(rescale));
  for (const Reader& size : reader.List("sizes")) {
    status.sizes.push_back({size.String("pool"), static_cast<int>(size.Int("units", 0)),
                            size.Number("secondsPerStep", 0), size.Number("spread", 0), size.Int("measurements", 0)});
  }
  status.start_time = reader.String("startTime");
  status.completion_time = reader.String("completionTime");
  return status;
}

Json JobStatus::ToJson() const {
  Json json = {{"observedGeneration", observed_generation},
               {"phase", Phase()},
               {"conditions", conditions.ToJson()},
               {"replicas", replicas},
               {"selector", selector},
               {"restarts", restarts},
               {"countedRestarts", counted_restarts}};
  if (std::string reason = Reason(); !reason.empty()) json["reason"] = std::move(reason);
  if (coordinator_term > 0) json["coordinatorTerm"] = coordinator_term;
  if (restart_progress > 0) json["restartProgress"] = restart_progress;
  if (plan) json["plan"] = PlanJson(*plan);
  if (observed) json["observed"] = ObservedJson(*observed);
  const bool runs = conditions.IsTrue(kRunningCondition) && !finished();
  if (observed && runs && observed->throughput > 0) {
    json["observed"]["eta"] = Span(observed->estimated_remaining_seconds);
  }
  if (cost) {
    json["cost"] = {{"spentUsd", Usd(cost->spent_usd)}, {"usdPerMillionSamples", Usd(cost->usd_per_million_samples)}};
    const bool pays = plan && !finished() && !conditions.IsTrue(kSuspendedCondition);
    if (pays) json["cost"]["usdPerHour"] = Usd(plan->usd_per_hour);
    if (!cost->counted_until.empty()) json["cost"]["countedUntil"] = cost->counted_until;
    if (cost->saved_usd) json["cost"]["savedUsd"] = Usd(*cost->saved_usd);
  }
  if (goodput) json["goodput"] = goodput->ToJson();
  if (last_rescale) json["lastRescale"] = RescaleJson(*last_rescale);
  for (const RescaleStatus& rescale : rescales) json["rescales"].push_back(RescaleJson(rescale));
  for (const SizeStatus& size : sizes) {
    json["sizes"].push_back({{"pool", size.pool},
                             {"units", size.units},
                             {"secondsPerStep", Rounded(size.seconds_per_step, 1e6)},
                             {"spread", Rounded(size.spread, 1e4)},
                             {"measurements", size.measurements}});
  }
  if (!start_time.empty()) json["startTime"] = start_time;
  if (!completion_time.empty()) json["completionTime"] = completion_time;
  return json;
}

}  // namespace medley::ops

#include "operator/telemetry/operator_metrics.h"

#include "common/metrics/process_metrics.h"
#include "common/metrics/text_page.h"

namespace medley::ops {
namespace {

constexpr const char* kPhases[] = {"Pending",   "Queued",    "Profiling",  "Starting", "Running",
                                   "Rescaling", "Suspended", "Restarting", "Complete", "Failed"};
constexpr char kPoolPrice[] = "medley_pool_usd_per_unit_hour";
constexpr char kPoolPriceHelp[] = "Price of a unit of the pool; no series: the price is unknown";
constexpr char kPoolUnits[] = "medley_pool_units";
constexpr char kPoolUnitsHelp[] =
    "Units of the pool: limit (spec.limit), capacity (that fit on its nodes), used (by jobs), free "
    "(that further pods could take)";

metrics::Counter& Plans(metrics::Registry& registry, const std::string& result) {
  return registry.GetCounter("medley_operator_plans_total", "Plan requests by their result", {{"result", result}});
}

metrics::Counter& Replans(metrics::Registry& registry, const std::string& decision) {
  return registry.GetCounter("medley_operator_replans_total",
                             "Candidate plans for running jobs, by the decision about them", {{"decision", decision}});
}

metrics::Counter& Switches(metrics::Registry& registry, const std::string& kind) {
  return registry.GetCounter("medley_operator_generation_switches_total", "Generation switches of jobs",
                             {{"kind", kind}});
}

metrics::Histogram& SwitchPauses(metrics::Registry& registry, const std::string& kind) {
  return registry.GetHistogram("medley_operator_generation_switch_pause_seconds",
                               "How long training paused for a generation switch", metrics::LatencyBounds(),
                               {{"kind", kind}});
}

metrics::Counter& Restarts(metrics::Registry& registry) {
  return registry.GetCounter("medley_operator_restarts_total", "Restarts of jobs");
}

metrics::Counter& Spent(metrics::Registry& registry) {
  return registry.GetCounter("medley_operator_spent_usd_total", "USD spent by jobs");
}

metrics::Counter& PodsCreated(metrics::Registry& registry) {
  return registry.GetCounter("medley_operator_pods_created_total", "Pods created");
}

metrics::Counter& StatusWrites(metrics::Registry& registry) {
  return registry.GetCounter("medley_operator_status_writes_total", "Writes of the status of jobs");
}

metrics::Counter& Observations(metrics::Registry& registry, const std::string& result) {
  return registry.GetCounter("medley_operator_observations_total",
                             "Observations of jobs sent to the scheduling service, by result", {{"result", result}});
}

}  // namespace

// Creates every series with known labels at the start, so that rates include the first event.
OperatorMetrics::OperatorMetrics(metrics::Registry& registry) : registry_(registry) {
  for (const char* result : {"accepted", "infeasible", "refused", "unavailable"}) Plans(registry_, result);
  for (const char* decision : {"SamePlan", "Forced", "Saves", "SavingTooSmall", "CostsMoreThanItSaves", "Cooldown",
                               "NothingLeft", "WaitsForSpot", "NoSpareTime"}) {
    Replans(registry_, decision);
  }
  for (const char* kind : {"rescale", "recovery"}) {
    Switches(registry_, kind);
    SwitchPauses(registry_, kind);
  }
  for (const char* result : {"accepted", "refused", "unavailable", "dropped"}) Observations(registry_, result);
  Restarts(registry_);
  Spent(registry_);
  PodsCreated(registry_);
  StatusWrites(registry_);
  SetLeader(true);
  SetScheduler(false, 0);
}

void OperatorMetrics::SetLeader(bool leader) {
  registry_.GetGauge("medley_leader", "1: this operator reconciles; 0: it stands by").Set(leader ? 1 : 0);
}

void OperatorMetrics::SetScheduler(bool connected, int64_t catalog_revision) {
  registry_
      .GetGauge("medley_operator_scheduler_connected", "1: this operator receives prices from the scheduling service")
      .Set(connected ? 1 : 0);
  registry_
      .GetGauge("medley_operator_catalog_revision", "Revision of the last price catalog that this operator received")
      .Set(static_cast<double>(catalog_revision));
}

void OperatorMetrics::CountPlan(const std::string& result) { Plans(registry_, result).Increment(); }

void OperatorMetrics::CountReplan(const std::string& decision) { Replans(registry_, decision).Increment(); }

void OperatorMetrics::ObserveSwitch(const kube::Key& job, bool recovery, double pause_seconds, double lost_steps) {
  const std::string kind = recovery ? "recovery" : "rescale";
  Switches(registry_, kind).Increment();
  SwitchPauses(registry_, kind).Observe(pause_seconds);
  jobs_.AddSwitch(job, recovery, pause_seconds, lost_steps);
}

void OperatorMetrics::CountRestart() { Restarts(registry_).Increment(); }

void OperatorMetrics::AddSpent(double usd) {
  if (usd > 0) Spent(registry_).Increment(usd);
}

void OperatorMetrics::CountCreatedPods(int pods) { PodsCreated(registry_).Increment(pods); }

void OperatorMetrics::CountStatusWrite() { StatusWrites(registry_).Increment(); }

bool OperatorMetrics::CountObservation(const std::string& result) {
  metrics::Counter& counter = Observations(registry_, result);
  counter.Increment();
  return counter.Value() == 1;
}

void OperatorMetrics::SetPrediction(double ratio_uncorrected, double ratio_corrected, double relative_error) {
  constexpr char kRatio[] = "medley_operator_prediction_ratio";
  constexpr char kRatioHelp[] = "Measured over predicted throughput of the model observed last";
  registry_.GetGauge(kRatio, kRatioHelp, {{"corrected", "false"}}).Set(ratio_uncorrected);
  registry_.GetGauge(kRatio, kRatioHelp, {{"corrected", "true"}}).Set(ratio_corrected);
  registry_
      .GetGauge("medley_operator_prediction_error_ratio",
                "Median relative error of corrected predictions of the model observed last")
      .Set(relative_error);
}

void OperatorMetrics::CountJobs() {
  const JobMetrics::Totals totals = jobs_.Sum();
  for (const char* phase : kPhases) {
    const auto found = totals.jobs.find(phase);
    registry_.GetGauge("medley_operator_jobs", "TrainingJobs by phase", {{"phase", phase}})
        .Set(found == totals.jobs.end() ? 0 : found->second);
  }
  registry_.GetGauge("medley_operator_plans_usd_per_hour", "Price of all plans in force").Set(totals.usd_per_hour);
}

void OperatorMetrics::SetCached(const std::string& resource, size_t objects) {
  registry_.GetGauge("medley_operator_cache_objects", "Objects in the operator's caches", {{"resource", resource}})
      .Set(static_cast<double>(objects));
}

void OperatorMetrics::SetPool(const std::string& pool, const Pool& values) {
  if (values.usd_per_unit_hour > 0) {
    registry_.GetGauge(kPoolPrice, kPoolPriceHelp, {{"pool", pool}}).Set(values.usd_per_unit_hour);
  } else {
    registry_.RemoveGauge(kPoolPrice, {{"pool", pool}});
  }
  const auto units = [&](const char* state, int count) {
    registry_.GetGauge(kPoolUnits, kPoolUnitsHelp, {{"pool", pool}, {"state", state}}).Set(count);
  };
  units("limit", values.limit);
  units("capacity", values.capacity);
  units("used", values.used);
  units("free", values.free);
}

void OperatorMetrics::RemovePool(const std::string& pool) {
  registry_.RemoveGauge(kPoolPrice, {{"pool", pool}});
  for (const char* state : {"limit", "capacity", "used", "free"}) {
    registry_.RemoveGauge(kPoolUnits, {{"pool", pool}, {"state", state}});
  }
}

std::string OperatorMetrics::Text() {
  CountJobs();
  metrics::TextPage page;
  jobs_.Write(page);
  metrics::WriteProcessMetrics(page);
  metrics::WriteBuildInfo(page, "operator");
  return registry_.Text() + page.Take();
}

}  // namespace medley::ops

#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {
namespace {

constexpr const char* kPhases[] = {"Pending",   "Profiling",  "Starting", "Running", "Rescaling",
                                   "Suspended", "Restarting", "Complete", "Failed"};
constexpr char kReconciles[] = "medley_operator_reconciles_total";

}  // namespace

OperatorMetrics::OperatorMetrics(metrics::Registry& registry) : registry_(registry) {
  for (const char* result : {"accepted", "infeasible", "refused", "unavailable"}) {
    registry_.GetCounter("medley_operator_plans_total", "Plans asked for", {{"result", result}});
  }
  SetJobs({}, 0);
}

void OperatorMetrics::CountPlan(const std::string& result) {
  registry_.GetCounter("medley_operator_plans_total", "Plans asked for", {{"result", result}})
      .Increment();
}

void OperatorMetrics::CountReplan(const std::string& decision) {
  registry_
      .GetCounter("medley_operator_replans_total", "Better plans considered",
                  {{"decision", decision}})
      .Increment();
}

void OperatorMetrics::ObserveSwitch(bool recovery, double pause_seconds) {
  const std::string kind = recovery ? "recovery" : "rescale";
  registry_
      .GetCounter("medley_operator_epoch_switches_total", "Epoch switches of jobs",
                  {{"kind", kind}})
      .Increment();
  registry_
      .GetHistogram("medley_operator_epoch_switch_pause_seconds", "How long training stood still",
                    metrics::LatencyBounds(), {{"kind", kind}})
      .Observe(pause_seconds);
}

void OperatorMetrics::CountRestart() {
  registry_.GetCounter("medley_operator_restarts_total", "Restarts of jobs").Increment();
}

void OperatorMetrics::AddSpent(double usd) {
  if (usd > 0)
    registry_.GetCounter("medley_operator_spent_usd_total", "USD spent by jobs").Increment(usd);
}

void OperatorMetrics::CountCreatedPods(int pods) {
  registry_.GetCounter("medley_operator_pods_created_total", "Pods made").Increment(pods);
}

void OperatorMetrics::CountStatusWrite() {
  registry_.GetCounter("medley_operator_status_writes_total", "Writes of the status of jobs")
      .Increment();
}

void OperatorMetrics::CountObservation(const std::string& result) {
  registry_
      .GetCounter("medley_operator_observations_total", "Measurements told to the scheduling service",
                  {{"result", result}})
      .Increment();
}

void OperatorMetrics::SetPrediction(double ratio_uncorrected, double ratio_corrected, double relative_error) {
  constexpr char kRatio[] = "medley_operator_prediction_ratio";
  constexpr char kRatioHelp[] = "Measured over predicted throughput of the model observed last";
  registry_.GetGauge(kRatio, kRatioHelp, {{"corrected", "false"}}).Set(ratio_uncorrected);
  registry_.GetGauge(kRatio, kRatioHelp, {{"corrected", "true"}}).Set(ratio_corrected);
  registry_
      .GetGauge("medley_operator_prediction_relative_error",
                "Median error of corrected predictions of the model observed last")
      .Set(relative_error);
}

void OperatorMetrics::SetJobs(const std::map<std::string, int>& by_phase, double usd_per_hour) {
  for (const char* phase : kPhases) {
    const auto found = by_phase.find(phase);
    registry_.GetGauge("medley_operator_jobs", "TrainingJobs by phase", {{"phase", phase}})
        .Set(found == by_phase.end() ? 0 : found->second);
  }
  registry_.GetGauge("medley_operator_plans_usd_per_hour", "Price of all plans in force")
      .Set(usd_per_hour);
}

void OperatorMetrics::SetPool(const std::string& pool, double usd_per_unit_hour, int free_units) {
  registry_.GetGauge("medley_operator_pool_usd_per_unit_hour", "Price of a unit", {{"pool", pool}})
      .Set(usd_per_unit_hour);
  registry_
      .GetGauge("medley_operator_pool_free_units", "Units that another pod could take",
                {{"pool", pool}})
      .Set(free_units);
}

ReconcileMetrics::ReconcileMetrics(metrics::Registry& registry, const std::string& controller)
    : success_(registry.GetCounter(kReconciles, "Reconciliations",
                                   {{"controller", controller}, {"result", "ok"}})),
      error_(registry.GetCounter(kReconciles, "Reconciliations",
                                 {{"controller", controller}, {"result", "error"}})),
      exceptions_(registry.GetCounter("medley_operator_reconcile_exceptions_total",
                                      "Exceptions out of reconcilers",
                                      {{"controller", controller}})),
      seconds_(registry.GetHistogram("medley_operator_reconcile_seconds",
                                     "Duration of reconciliations", metrics::LatencyBounds(),
                                     {{"controller", controller}})) {}

void ReconcileMetrics::OnReconcile(Outcome outcome, base::nanoseconds duration) {
  const bool ok = outcome == Outcome::kSuccess || outcome == Outcome::kRequeueAfter;
  (ok ? success_ : error_).Increment();
  seconds_.Observe(base::ToSeconds(duration));
}

void ReconcileMetrics::OnException() { exceptions_.Increment(); }

}  // namespace medley::ops

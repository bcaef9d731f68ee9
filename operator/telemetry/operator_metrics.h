// The operator's metrics, each made once. Thread-safe. Owner: OperatorApp. No job names as labels.
#pragma once

#include <map>
#include <string>

#include "common/metrics/metrics.h"
#include "operator/runtime/controller.h"

namespace medley::ops {

class OperatorMetrics {
 public:
  explicit OperatorMetrics(metrics::Registry& registry);

  // `result`: accepted, infeasible, refused, unavailable.
  void CountPlan(const std::string& result);
  // `decision`: the reason of the MoveDecision.
  void CountReplan(const std::string& decision);
  void ObserveSwitch(bool recovery, double pause_seconds);
  void CountRestart();
  void AddSpent(double usd);
  void CountCreatedPods(int pods);
  void CountStatusWrite();
  // `result`: accepted, refused, unavailable, dropped.
  void CountObservation(const std::string& result);
  // Of the model that was observed last: measured over predicted throughput before and after correction, and the
  // relative error after it.
  void SetPrediction(double ratio_uncorrected, double ratio_corrected, double relative_error);
  // Jobs in each phase, and USD/h of all running plans; phases that are absent become 0.
  void SetJobs(const std::map<std::string, int>& by_phase, double usd_per_hour);
  void SetPool(const std::string& pool, double usd_per_unit_hour, int free_units);

 private:
  metrics::Registry& registry_;
};

// Metrics of one controller.
class ReconcileMetrics final : public ControllerMetrics {
 public:
  ReconcileMetrics(metrics::Registry& registry, const std::string& controller);
  void OnReconcile(Outcome outcome, base::nanoseconds duration) override;
  void OnException() override;

 private:
  metrics::Counter& success_;
  metrics::Counter& error_;
  metrics::Counter& exceptions_;
  metrics::Histogram& seconds_;
};

}  // namespace medley::ops
